package sqlite

import (
	"time"

	"chancery/internal/core/store/internal/engine"
)

// transact runs jobs, and those that queue up meanwhile, in one SQL transaction, settles those whose outcome is final
// and gives back those that must run again.
func (w *writer) transact(jobs []*job, level engine.Durability) (again []*job) {
	if err := w.begin(level); err != nil {
		settleAll(jobs, explain(err))
		return nil
	}
	start := time.Now()
	var ran []*job
	bytes := 0
	for len(jobs) > 0 {
		j := jobs[0]
		jobs = jobs[1:]
		bytes += engine.Size(j.row)
		if j.alone && len(ran) > 0 {
			again = append(again, j)
			continue
		}
		if w.perform(j) {
			ran = append(ran, j)
		}
		if w.gone {
			return append(append(ran, again...), jobs...)
		}
		if j.alone {
			break
		}
		if len(jobs) == 0 && again == nil && len(ran) < batchMax && bytes < engine.BatchBytes && time.Since(start) < batchFor {
			if next := w.poll(level); next != nil {
				jobs = append(jobs, next)
			}
		}
	}
	w.e.Probe.Took(engine.Statement, time.Since(start))
	return append(append(w.commit(ran), again...), jobs...)
}

func settleAll(jobs []*job, err error) {
	for _, j := range jobs {
		j.settle(err)
	}
}

func (w *writer) begin(level engine.Durability) error {
	if level != w.level {
		pragma := "PRAGMA synchronous=FULL"
		if level == engine.Written {
			pragma = "PRAGMA synchronous=NORMAL"
		}
		if _, err := w.session.Exec(pragma, nil); err != nil {
			return err
		}
		w.level = level
	}
	w.gone = false
	_, err := w.session.Exec("BEGIN IMMEDIATE", nil)
	return err
}

// perform runs one job inside the transaction. It reports whether the job now waits for the commit; otherwise it is
// settled.
func (w *writer) perform(j *job) bool {
	if w.refuse.Load() {
		j.settle(engine.Closed)
		return false
	}
	if !j.enter() {
		j.settle(engine.Left(j.ctx))
		return false
	}
	defer j.exit()
	if j.worked.IsZero() {
		w.e.Probe.Took(engine.QueueWait, time.Since(j.queued))
	}
	err := w.execute(j)
	j.worked = time.Now()
	if err != nil {
		j.settle(explain(err))
		return false
	}
	return true
}

// execute runs a row's statement as it is, and a closure in a savepoint, so that its error undoes only its own work.
func (w *writer) execute(j *job) (err error) {
	if j.hot != nil {
		j.result, err = w.append(j.hot, j.row)
		return err
	}
	if _, err := w.session.Exec("SAVEPOINT work", nil); err != nil {
		return err
	}
	if err := j.work.Run(w.session); err != nil {
		w.undo()
		return err
	}
	_, err = w.session.Exec("RELEASE work", nil)
	return err
}

// undo takes back the work of one closure, or, if that cannot be done, of the whole transaction.
func (w *writer) undo() {
	if w.gone {
		return
	}
	_, undo := w.session.Exec("ROLLBACK TO work", nil)
	_, release := w.session.Exec("RELEASE work", nil)
	if undo != nil || release != nil {
		w.rollback()
	}
}

// commit ends the transaction. Where the commit of several fails, each gets a transaction of its own, so that the one
// at fault does not fail the others.
func (w *writer) commit(ran []*job) (again []*job) {
	start := time.Now()
	if _, err := w.session.Exec("COMMIT", nil); err != nil {
		w.fatal(err)
		if !w.gone {
			w.rollback()
		}
		if len(ran) == 1 {
			ran[0].settle(explain(err))
			return nil
		}
		for _, j := range ran {
			j.alone = true
		}
		return ran
	}
	w.e.Probe.Took(engine.Sync, time.Since(start))
	w.e.Probe.Batched(len(ran))
	for _, j := range ran {
		if j.work.Committed != nil {
			j.work.Committed()
		}
		w.e.Probe.Took(engine.CommitWait, time.Since(j.worked))
		j.settle(nil)
	}
	return nil
}

func (w *writer) rollback() {
	if _, err := w.session.Exec("ROLLBACK", nil); err != nil && !w.gone {
		w.e.Log.Error("rolling back", "error", err)
	}
}

// fatal ends the process where err leaves open what is on the disk.
func (w *writer) fatal(err error) {
	if doubtful(err) {
		w.e.Fatal(err)
	}
}
