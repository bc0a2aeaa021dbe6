package storetest

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"chancery/internal/base/fault"
	"chancery/internal/core/store"
)

// Conform checks what the store promises, against a database made by target.
func Conform(t *testing.T, target func(testing.TB) Target) {
	at := target(t)
	first, err := store.Open(t.Context(), store.Config{URL: at.URL, Accept: []string{"file_system"}})
	if err != nil {
		t.Fatal(err)
	}
	at.Create(t, first)
	if err := first.Close(t.Context()); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		sentence string
		check    func(*testing.T, bench)
	}{
		{"a committed change is read", committedIsRead},
		{"an error undoes its own transaction only", errorUndoesItself},
		{"an error of a method spoils the transaction", errorSpoils},
		{"a closure's own error is its own, whatever it wraps", ownErrorIsOwn},
		{"a panic is an error of its own transaction", panicIsError},
		{"insert unless it exists", insertNew},
		{"a transaction behaves as if it ran alone", serializable},
		{"a caller that leaves disturbs nobody", leavingDisturbsNobody},
		{"a transaction in a transaction is refused", nestedIsRefused},
		{"a change beyond a megabyte is refused", hugeIsRefused},
		{"all agree on which texts cannot be", oddTextIsRefused},
		{"a read sees one snapshot and changes nothing", readIsSnapshot},
		{"a row is inserted once", appendOnce},
		{"the guard refuses a row", guardRefuses},
		{"rivals in one batch: one wins, the others get its row", rivals},
		{"a row at fault fails alone", badRowFailsAlone},
		{"an unsynced level stores as well", writtenStores},
		{"subscribers hear of a commit before it is answered", feedBeforeAnswer},
		{"instances that start at once agree", startAtOnce},
		{"another instance hears of a commit within a second", feedElsewhere},
		{"commits in the reverse order of their numbers are both heard", feedReversed},
		{"a lease has one holder", leaseHasOneHolder},
		{"the audit and hot rows are sealed and signed", auditIsSealed},
		{"tampering shows", tamperingShows},
		{"rows that went by a rule are named", retiredRowsAreNamed},
		{"a closed store refuses", closedRefuses},
		{"what was acknowledged survives kill -9", survivesKill},
	} {
		t.Run(c.sentence, func(t *testing.T) {
			b := bench{Store: OpenAt(t, store.Config{URL: at.URL}), Target: at}
			b.empty(t)
			c.check(t, b)
		})
	}
}

// bench is a store with the sample tables, and where it lies.
type bench struct {
	*store.Store
	Target
}

// empty removes what an earlier check has left.
func (b bench) empty(t testing.TB) {
	t.Helper()
	for _, table := range []string{"sample_certificate", "sample_revocation", "sample_counter", "audit", "seal", "lease"} {
		if err := b.Write(t.Context(), func(tx *store.Tx) error {
			_, err := tx.Exec("DELETE FROM " + table)
			return err
		}); err != nil {
			t.Fatalf("emptying %s: %v", table, err)
		}
	}
}

func (b bench) set(t testing.TB, name string, value int64) {
	t.Helper()
	if err := b.Write(t.Context(), func(tx *store.Tx) error { return put(tx, name, value) }); err != nil {
		t.Fatalf("writing counter %s: %v", name, err)
	}
}

func put(tx *store.Tx, name string, value int64) error {
	fresh, err := tx.InsertNew("INSERT INTO sample_counter (name, value) VALUES (?, ?)", name, value)
	if err != nil || fresh {
		return err
	}
	_, err = tx.Exec("UPDATE sample_counter SET value = ? WHERE name = ?", value, name)
	return err
}

func get(tx *store.Tx, name string) (value int64, found bool, err error) {
	found, err = tx.One([]any{&value}, "SELECT value FROM sample_counter WHERE name = ?", name)
	return value, found, err
}

// want fails unless the counter has the value; -1 stands for none.
func (b bench) want(t testing.TB, name string, value int64) {
	t.Helper()
	got := int64(-1)
	err := b.Read(t.Context(), func(tx *store.Tx) error {
		v, found, err := get(tx, name)
		if found {
			got = v
		}
		return err
	})
	if err != nil || got != value {
		t.Fatalf("counter %s = %d, %v; want %d", name, got, err, value)
	}
}

func committedIsRead(t *testing.T, b bench) {
	b.want(t, "a", -1)
	b.set(t, "a", 7)
	b.want(t, "a", 7)
	b.set(t, "a", 8)
	b.want(t, "a", 8)
}

func errorUndoesItself(t *testing.T, b bench) {
	mine := errors.New("mine")
	var group sync.WaitGroup
	for i := range 40 {
		group.Go(func() {
			err := b.Write(t.Context(), func(tx *store.Tx) error {
				if err := put(tx, fmt.Sprint("n", i), int64(i)); err != nil {
					return err
				}
				if i%2 == 1 {
					return mine
				}
				return nil
			})
			if (i%2 == 1) != errors.Is(err, mine) {
				t.Errorf("write %d: %v", i, err)
			}
		})
	}
	group.Wait()
	for i := range 40 {
		want := int64(i)
		if i%2 == 1 {
			want = -1
		}
		b.want(t, fmt.Sprint("n", i), want)
	}
}

func errorSpoils(t *testing.T, b bench) {
	err := b.Write(t.Context(), func(tx *store.Tx) error {
		if err := put(tx, "a", 1); err != nil {
			return err
		}
		if _, err := tx.Exec("INSERT INTO no_such_table (x) VALUES (?)", 1); err == nil {
			t.Error("a wrong statement went through")
		}
		if err := put(tx, "b", 1); err == nil {
			t.Error("a spoiled transaction went on")
		}
		return nil
	})
	if err == nil {
		t.Error("a spoiled transaction was committed")
	}
	b.want(t, "a", -1)
	b.want(t, "b", -1)
}

func ownErrorIsOwn(t *testing.T, b bench) {
	for _, cause := range []error{io.EOF, context.DeadlineExceeded, store.Busy} {
		runs := 0
		own := fmt.Errorf("reading a file: %w", cause)
		err := b.Write(t.Context(), func(tx *store.Tx) error {
			runs++
			return own
		})
		if !errors.Is(err, own) || runs != 1 {
			t.Errorf("%v came back as %v after %d runs", own, err, runs)
		}
		if err := b.Read(t.Context(), func(*store.Tx) error { return own }); !errors.Is(err, own) {
			t.Errorf("%v came back from a read as %v", own, err)
		}
	}
	err := b.Write(t.Context(), func(tx *store.Tx) error {
		if err := put(tx, "a", 1); err != nil {
			return err
		}
		return tx.Each("SELECT name FROM sample_counter", nil, func(store.Row) error { panic("boom") })
	})
	if err == nil {
		t.Error("a panic inside Each was a success")
	}
	b.want(t, "a", -1)
}

func panicIsError(t *testing.T, b bench) {
	if err := b.Write(t.Context(), func(tx *store.Tx) error { panic("boom") }); err == nil {
		t.Error("a panic was a success")
	}
	b.set(t, "a", 1)
}

func insertNew(t *testing.T, b bench) {
	for run, want := range []bool{true, false} {
		var got bool
		err := b.Write(t.Context(), func(tx *store.Tx) (err error) {
			got, err = tx.InsertNew("INSERT INTO sample_counter (name, value) VALUES (?, ?)", "a", run)
			return err
		})
		if err != nil || got != want {
			t.Errorf("run %d: inserted %v, %v; want %v", run, got, err, want)
		}
	}
	b.want(t, "a", 0)
}

func serializable(t *testing.T, b bench) {
	const callers, each = 8, 5
	b.set(t, "sum", 0)
	var runs atomic.Int64
	var group sync.WaitGroup
	for range callers {
		group.Go(func() {
			for range each {
				err := b.Write(t.Context(), func(tx *store.Tx) error {
					runs.Add(1)
					v, _, err := get(tx, "sum")
					if err != nil {
						return err
					}
					return put(tx, "sum", v+1)
				})
				if err != nil {
					t.Errorf("adding one: %v", err)
				}
			}
		})
	}
	group.Wait()
	b.want(t, "sum", callers*each)
	t.Logf("%d transactions took %d runs", callers*each, runs.Load())
}

// leavingDisturbsNobody cancels every third caller at some moment of its wait.
func leavingDisturbsNobody(t *testing.T, b bench) {
	var group sync.WaitGroup
	stored := make([]error, 120)
	for i := range stored {
		group.Go(func() {
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			if i%3 == 0 {
				time.AfterFunc(time.Duration(i)*50*time.Microsecond, cancel)
			}
			stored[i] = b.Write(ctx, func(tx *store.Tx) error { return put(tx, fmt.Sprint("n", i), 1) })
			if i%3 != 0 && stored[i] != nil {
				t.Errorf("a caller that stayed: %v", stored[i])
			}
		})
	}
	group.Wait()
	b.set(t, "later", 1)
	for i, err := range stored {
		switch {
		case err == nil:
			b.want(t, fmt.Sprint("n", i), 1)
		case errors.Is(err, store.Unknown): // either way
		case errors.Is(err, context.Canceled):
			b.want(t, fmt.Sprint("n", i), -1)
		default:
			t.Errorf("a caller that left: %v", err)
		}
	}
}

func nestedIsRefused(t *testing.T, b bench) {
	err := b.Write(t.Context(), func(tx *store.Tx) error {
		return b.Write(tx.Context(), func(*store.Tx) error { return nil })
	})
	if err == nil {
		t.Error("a transaction was started inside another")
	}
}

func hugeIsRefused(t *testing.T, b bench) {
	err := b.Write(t.Context(), func(tx *store.Tx) error {
		_, err := tx.InsertNew("INSERT INTO sample_revocation (target) VALUES (?)", strings.Repeat("x", 2<<20))
		return err
	})
	if got := fault.KindOf(err); got != fault.TooLarge {
		t.Errorf("got %v, want %v", got, fault.TooLarge)
	}
}

// oddTextIsRefused asks for texts that one database takes and another does not. Letters beyond ASCII in the place of an
// identifier are refused or not found.
func oddTextIsRefused(t *testing.T, b bench) {
	for text, code := range map[string]string{"a\x00": "text_invalid", "\xff": "text_invalid", "\xed\xa0\x80": "text_invalid", "plain": "", "\u00e4\U0001f600": ""} {
		look := func(tx *store.Tx) error {
			_, _, err := get(tx, text)
			return err
		}
		for what, err := range map[string]error{"read": b.Read(t.Context(), look), "write": b.Write(t.Context(), look)} {
			if got := fault.CodeOf(err); err != nil && got != "text_invalid" || code != "" && got != code {
				t.Errorf("%s %q: %v, want the code %q", what, text, err, code)
			}
		}
	}
}

func readIsSnapshot(t *testing.T, b bench) {
	b.set(t, "a", 1)
	err := b.Read(t.Context(), func(tx *store.Tx) error {
		first, _, err := get(tx, "a")
		if err != nil {
			return err
		}
		b.set(t, "a", 2)
		second, _, err := get(tx, "a")
		if first != 1 || second != 1 {
			t.Errorf("one read saw %d, then %d", first, second)
		}
		return err
	})
	if err != nil {
		t.Errorf("reading: %v", err)
	}
	if err := b.Read(t.Context(), func(tx *store.Tx) error { return put(tx, "a", 3) }); err == nil {
		t.Error("a read changed something")
	}
	b.want(t, "a", 2)
}

func (b bench) append(t testing.TB, row []any) store.Appended {
	t.Helper()
	got, err := b.Append(t.Context(), Certificate, row)
	if err != nil {
		t.Fatalf("appending: %v", err)
	}
	return got
}

func appendOnce(t *testing.T, b bench) {
	first := Row(1, []byte{0, 1, 255})
	first[4] = "request-1"
	if got := b.append(t, first); got.Outcome != store.Inserted {
		t.Fatalf("a new row: outcome %v", got.Outcome)
	}
	for key, columns := range [][]int{{0}, {1, 2}, {3, 4}} {
		rival := Row(int64(100+key), []byte("other"))
		for _, c := range columns {
			rival[c] = first[c]
		}
		want := store.Appended{Outcome: store.Exists, Stored: first}
		if diff := cmp.Diff(want, b.append(t, rival)); diff != "" {
			t.Errorf("a rival by key %d (-want +got):\n%s", key, diff)
		}
	}
	none := Row(300, nil)
	none[9] = []byte{}
	for i := range 3 { // without a request, the third key collides with nothing
		none[0], none[2] = fmt.Appendf(nil, "serial %d", i), fmt.Appendf(nil, "nonce %d", i)
		if got := b.append(t, none); got.Outcome != store.Inserted {
			t.Errorf("row %d without a request: %+v", i, got)
		}
		none = append([]any{}, none...)
	}
}

func guardRefuses(t *testing.T, b bench) {
	row := Row(1, []byte("der"))
	err := b.Write(t.Context(), func(tx *store.Tx) error {
		_, err := tx.InsertNew("INSERT INTO sample_revocation (target) VALUES (?)", row[6])
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	want := store.Appended{Outcome: store.Refused, Because: row[6].(string)}
	if diff := cmp.Diff(want, b.append(t, row)); diff != "" {
		t.Errorf("a row under a revoked delegation (-want +got):\n%s", diff)
	}
	if got := b.append(t, Row(2, []byte("der"))); got.Outcome != store.Inserted {
		t.Errorf("a row under another delegation: %+v", got)
	}
}

func rivals(t *testing.T, b bench) {
	const callers = 50
	var group sync.WaitGroup
	var won atomic.Int64
	answers := make([]store.Appended, callers)
	rows := make([][]any, callers)
	for i := range callers {
		rows[i] = Row(int64(i), fmt.Append(nil, "der ", i))
		rows[i][1], rows[i][2] = int64(7), []byte("one nonce")
		group.Go(func() {
			got, err := b.Append(t.Context(), Certificate, rows[i])
			if err != nil {
				t.Errorf("appending: %v", err)
			}
			if answers[i] = got; got.Outcome == store.Inserted {
				won.Store(int64(i))
			}
		})
	}
	group.Wait()
	winners := 0
	for i, got := range answers {
		if got.Outcome == store.Inserted {
			winners++
		} else if diff := cmp.Diff(store.Appended{Outcome: store.Exists, Stored: rows[won.Load()]}, got); diff != "" {
			t.Errorf("rival %d (-want +got):\n%s", i, diff)
		}
	}
	if winners != 1 {
		t.Errorf("%d rows with one nonce were inserted", winners)
	}
}

func badRowFailsAlone(t *testing.T, b bench) {
	var group sync.WaitGroup
	for i := range 30 {
		row := Row(int64(i), []byte("der"))
		if i == 13 {
			row[5] = nil // NOT NULL
		}
		group.Go(func() {
			got, err := b.Append(t.Context(), Certificate, row)
			if i == 13 && err == nil {
				t.Errorf("a row without an authority: %+v", got)
			}
			if i != 13 && (err != nil || got.Outcome != store.Inserted) {
				t.Errorf("row %d: %+v, %v", i, got, err)
			}
		})
	}
	group.Wait()
}

func writtenStores(t *testing.T, b bench) {
	if err := b.WriteAs(t.Context(), store.Written, func(tx *store.Tx) error { return put(tx, "a", 1) }); err != nil {
		t.Fatal(err)
	}
	b.want(t, "a", 1)
	b.set(t, "b", 2)
	b.want(t, "b", 2)
}

func feedBeforeAnswer(t *testing.T, b bench) {
	var mu sync.Mutex
	heard := map[string]bool{}
	cancel := b.Subscribe("agent", func(c store.Change) {
		mu.Lock()
		defer mu.Unlock()
		heard[c.Key] = true
	})
	for _, undo := range []error{nil, errors.New("undone")} {
		key := fmt.Sprint("agt_", undo == nil)
		err := b.Write(t.Context(), func(tx *store.Tx) error {
			return errors.Join(tx.Publish(store.Change{Topic: "agent", Key: key}), tx.Publish(store.Change{Topic: "key", Key: "k"}), undo)
		})
		mu.Lock()
		if !errors.Is(err, undo) || heard[key] != (undo == nil) || heard["k"] {
			t.Errorf("after a write that gave %v, subscribers heard %v", err, heard)
		}
		mu.Unlock()
	}
	cancel()
	if err := b.Write(t.Context(), func(tx *store.Tx) error { return tx.Publish(store.Change{Topic: "agent", Key: "late"}) }); err != nil {
		t.Fatal(err)
	}
	if heard["late"] {
		t.Error("a cancelled subscriber was told")
	}
}

func closedRefuses(t *testing.T, b bench) {
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Second)
	defer cancel()
	if err := b.Close(ctx); err != nil {
		t.Fatalf("closing: %v", err)
	}
	if err := b.Write(ctx, func(tx *store.Tx) error { return put(tx, "a", 1) }); err == nil {
		t.Error("a closed store took a write")
	}
	if _, err := b.Append(ctx, Certificate, Row(1, []byte("der"))); !errors.Is(err, store.Closed) {
		t.Errorf("a closed store took a row: %v", err)
	}
}
