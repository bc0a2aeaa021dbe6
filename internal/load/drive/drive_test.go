package drive

import (
	"context"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"
)

// serve starts a server without TLS and gives its address.
func serve(t *testing.T, h http.HandlerFunc) string {
	t.Helper()
	s := httptest.NewServer(h)
	t.Cleanup(s.Close)
	return strings.TrimPrefix(s.URL, "http://")
}

func right(Answer) error { return nil }

func post(int) (Job, error) {
	return Job{Question: Question{Method: http.MethodPost, Path: "/", Body: []byte("x")}, Judge: right}, nil
}

func counted(t *Tally) *StageTally { return t.Stages[len(t.Stages)-1] }

// TestOpenLoopDoesNotHideAStall stalls the server once. A closed loop would count one slow request for each connection;
// what should have started meanwhile waited just as long.
func TestOpenLoopDoesNotHideAStall(t *testing.T) {
	const stall = 300 * time.Millisecond
	var first sync.Once
	address := serve(t, func(http.ResponseWriter, *http.Request) {
		first.Do(func() { <-time.After(stall) })
	})
	stages := []Stage{{Rate: 200, For: time.Second}}
	got := Load{Address: address, Connections: 1, Stages: stages, Arrivals: Poisson(stages, 1), Next: post}.Run(t.Context())
	s := counted(got)
	if s.Offered < 100 || int(s.Latency.TotalCount()) != s.Offered {
		t.Fatalf("offered %d, answered %d", s.Offered, s.Latency.TotalCount())
	}
	// 200 a second for 300 ms is 60 requests that start late, half of them by more than 150 ms.
	if late := s.Offered - int(countBelow(s, 100*time.Millisecond)); late < 20 {
		t.Errorf("%d of %d requests took over 100 ms; the stall delayed some 40", late, s.Offered)
	}
	if slow := int(s.Service.TotalCount()) - below(s, 100*time.Millisecond); slow > 5 {
		t.Errorf("%d requests were slow from sending on, want the one that was stalled", slow)
	}
}

func countBelow(s *StageTally, d time.Duration) (n int64) {
	for _, b := range s.Latency.Distribution() {
		if b.To <= d.Microseconds() {
			n += b.Count
		}
	}
	return n
}

func below(s *StageTally, d time.Duration) (n int) {
	for _, b := range s.Service.Distribution() {
		if b.To <= d.Microseconds() {
			n += int(b.Count)
		}
	}
	return n
}

func TestUnservedArrivalsAreErrors(t *testing.T) {
	release := make(chan struct{})
	address := serve(t, func(http.ResponseWriter, *http.Request) { <-release })
	defer close(release)
	stages := []Stage{{Rate: 500, For: 200 * time.Millisecond}}
	got := Load{Address: address, Connections: 2, Stages: stages, Arrivals: Poisson(stages, 1), Next: post, Patience: 100 * time.Millisecond}.Run(t.Context())
	s := counted(got)
	failed := 0
	for _, n := range s.Errors {
		failed += n
	}
	if s.Offered == 0 || failed != s.Offered {
		t.Errorf("%d offered, %d failed (%v): whoever was not served counts", s.Offered, failed, s.Errors)
	}
}

// TestWhoLeavesMakesNoLine: where people go away when a rush ends, the next stage finds no line of theirs.
func TestWhoLeavesMakesNoLine(t *testing.T) {
	for _, leave := range []bool{true, false} {
		release := make(chan struct{})
		address := serve(t, func(http.ResponseWriter, *http.Request) { <-release })
		stages := []Stage{{Rate: 500, For: 200 * time.Millisecond, Leave: leave}, {Rate: 50, For: 400 * time.Millisecond}}
		end := func(stage int) {
			if stage == 0 {
				close(release)
			}
		}
		got := Load{Address: address, Connections: 2, Stages: stages, Arrivals: Poisson(stages, 1), Next: post, End: end, Begin: func(int) {}}.Run(t.Context())
		rush, after := got.Stages[0], got.Stages[1]
		if answered := int(rush.Latency.TotalCount()); (answered < rush.Offered/2) != leave || answered+rush.Errors[Unserved] != rush.Offered {
			t.Errorf("leave %v: of %d in the rush %d were answered, %v", leave, rush.Offered, answered, rush.Errors)
		}
		if int(after.Latency.TotalCount()) != after.Offered || got.Seconds[0].Failed > 0 {
			t.Errorf("leave %v: of %d after it %d were answered, %v; %d failed", leave, after.Offered, after.Latency.TotalCount(), after.Errors, got.Seconds[0].Failed)
		}
	}
}

func TestRefusedComeAgain(t *testing.T) {
	for _, obey := range []bool{true, false} {
		var refused, renewed atomic.Int64
		address := serve(t, func(w http.ResponseWriter, r *http.Request) {
			body, _ := io.ReadAll(r.Body)
			if string(body) == "x" {
				refused.Add(1)
				w.Header().Set("Retry-After", "0")
				w.WriteHeader(http.StatusServiceUnavailable)
			}
		})
		next := func(turn int) (Job, error) {
			j, err := post(turn)
			j.Again = func() (Job, error) {
				renewed.Add(1)
				j.Body = []byte("anew")
				return j, nil
			}
			return j, err
		}
		got := Load{Address: address, Connections: 4, Stages: []Stage{{For: 5 * time.Second}}, Arrivals: AtOnce(50), Obey: obey, Next: next}.Run(t.Context())
		s := counted(got)
		want := 0
		if obey {
			want = 50
		}
		if int(s.Latency.TotalCount()) != want || int(renewed.Load()) != want || s.Refused != 50 || s.Refusal.TotalCount() != 50 || len(s.Errors) > 0 {
			t.Errorf("obey %v: answered %d, made anew %d, refused %d, errors %v", obey, s.Latency.TotalCount(), renewed.Load(), s.Refused, s.Errors)
		}
		if time.Until(got.Until) < time.Second {
			t.Error("the run waited for its last moment although everybody was served")
		}
	}
}

func TestWrongAndBrokenAnswers(t *testing.T) {
	address := serve(t, func(_ http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/broken" {
			panic(http.ErrAbortHandler)
		}
	})
	var unanswered atomic.Int64
	next := func(turn int) (Job, error) {
		j, err := post(turn)
		switch turn % 3 {
		case 1:
			j.Judge = func(Answer) error { return errors.New("wrong") }
		case 2:
			j.Path = "/broken"
			j.Unanswered = func(error) { unanswered.Add(1) }
		}
		return j, err
	}
	got := Load{Address: address, Connections: 1, Stages: []Stage{{For: 10 * time.Second}}, Arrivals: AtOnce(30), Next: next}.Run(t.Context())
	if s := counted(got); s.Latency.TotalCount() != 10 || got.Wrongs != 10 || unanswered.Load() != 10 || s.Errors["no answer: connection closed"] != 10 {
		t.Errorf("right %d, wrong %d, unanswered %d, errors %v; want 10 each", s.Latency.TotalCount(), got.Wrongs, unanswered.Load(), s.Errors)
	}
}

func TestFreshConnections(t *testing.T) {
	for _, fresh := range []bool{true, false} {
		var mu sync.Mutex
		peers := map[string]bool{}
		address := serve(t, func(_ http.ResponseWriter, r *http.Request) {
			mu.Lock()
			defer mu.Unlock()
			peers[r.RemoteAddr] = true
		})
		got := Load{Address: address, Connections: 1, Fresh: fresh, Stages: []Stage{{For: 10 * time.Second}}, Arrivals: AtOnce(5), Next: post}.Run(t.Context())
		want := 1
		if fresh {
			want = 5
		}
		if shook := counted(got).Handshakes; len(peers) != want || shook != want {
			t.Errorf("fresh %v: %d connections, %d handshakes, want %d", fresh, len(peers), shook, want)
		}
	}
}

func TestRunEndsWithItsContext(t *testing.T) {
	release, arrived := make(chan struct{}), make(chan struct{}, 100)
	defer close(release)
	address := serve(t, func(http.ResponseWriter, *http.Request) {
		arrived <- struct{}{}
		<-release
	})
	stages := []Stage{{Rate: 100, For: time.Hour}}
	for name, a := range map[string]Arrivals{"closed": nil, "poisson": Poisson(stages, 1), "steady": Steady(100, time.Second, stages, 1), "once": AtOnce(1000)} {
		ctx, cancel := context.WithCancel(t.Context())
		go func() {
			<-arrived
			cancel()
		}()
		got := Load{Address: address, Connections: 2, Stages: stages, Arrivals: a, Obey: true, Next: post}.Run(ctx)
		if len(got.Errors) > 0 || got.Wrongs > 0 {
			t.Errorf("%s: the interruption was counted as %v", name, got.Errors)
		}
	}
}

func TestArrivals(t *testing.T) {
	stages := []Stage{{Rate: 1000, For: 10 * time.Second}, {For: 10 * time.Second}, {Rate: 5000, For: 10 * time.Second}}
	counts := make([]int, 3)
	last := time.Duration(0)
	for p := Poisson(stages, 7); ; {
		at, _, ok := p.next()
		if !ok {
			break
		}
		if at < last {
			t.Fatalf("%s after %s", at, last)
		}
		last = at
		counts[at/(10*time.Second)]++
	}
	if counts[0] < 9500 || counts[0] > 10500 || counts[1] != 0 || counts[2] < 49000 || counts[2] > 51000 {
		t.Errorf("arrivals a stage: %v, want about 10,000, none and 50,000", counts)
	}
	agents := map[int]time.Duration{}
	n := 0
	for s := Steady(10, time.Second, []Stage{{For: 3 * time.Second}}, 7); ; n++ {
		at, turn, ok := s.next()
		if !ok {
			break
		}
		if before, came := agents[turn%10]; came && at-before != time.Second {
			t.Errorf("agent %d came after %s", turn%10, at-before)
		}
		agents[turn%10] = at
	}
	if n != 30 {
		t.Errorf("%d arrivals of ten agents in three seconds", n)
	}
}

func TestStagesCountWhatWasToStartInThem(t *testing.T) {
	address := serve(t, func(http.ResponseWriter, *http.Request) {})
	stages := []Stage{{Name: "warm", Rate: 500, For: 100 * time.Millisecond, Uncounted: true}, {Name: "one", Rate: 500, For: 200 * time.Millisecond}, {Name: "two", Rate: 100, For: 200 * time.Millisecond}}
	var said []string
	got := Load{
		Address: address, Connections: 8, Stages: stages, Arrivals: Poisson(stages, 3), Next: post,
		Begin: func(i int) { said = append(said, "begin "+stages[i].Name) }, End: func(i int) { said = append(said, "end "+stages[i].Name) },
	}.Run(t.Context())
	if want := "begin warm, end warm, begin one, end one, begin two, end two"; strings.Join(said, ", ") != want {
		t.Errorf("%v, want %s", said, want)
	}
	total := 0
	for _, s := range got.Stages {
		if s.Offered == 0 || int(s.Latency.TotalCount()) != s.Offered {
			t.Errorf("%s: offered %d, answered %d", s.Name, s.Offered, s.Latency.TotalCount())
		}
		total += s.Offered
	}
	seconds := 0
	for _, s := range got.Seconds {
		seconds += s.Answered
	}
	if seconds != total || !got.From.Equal(got.Stages[1].From) {
		t.Errorf("%d answers by seconds, %d by stages; counted from %s", seconds, total, got.From)
	}
	if last := got.Seconds[len(got.Seconds)-1]; !last.Partial {
		t.Error("half a second passes for a whole one")
	}
}

// TestAFullLineHidesNobody lets more arrive than the line holds, before a server that stands still: all of them count.
func TestAFullLineHidesNobody(t *testing.T) {
	release := make(chan struct{})
	address := serve(t, func(http.ResponseWriter, *http.Request) { <-release })
	defer close(release)
	const n = readyMax + 1000
	got := Load{Address: address, Connections: 1, Stages: []Stage{{For: 100 * time.Millisecond}}, Arrivals: AtOnce(n), Next: post, Patience: 100 * time.Millisecond}.Run(t.Context())
	if s := counted(got); s.Offered != n || s.Errors[Unserved] != n || got.Seconds[0].Offered != n {
		t.Errorf("%d arrived: %d offered, %v, %d in the first second", n, s.Offered, s.Errors, got.Seconds[0].Offered)
	}
}

// TestLatencyOfTheRefused holds for both loops: who is sent away and comes again has waited meanwhile, and brings
// evidence that is fresh.
func TestLatencyOfTheRefused(t *testing.T) {
	var asked atomic.Int64
	address := serve(t, func(w http.ResponseWriter, r *http.Request) {
		if body, _ := io.ReadAll(r.Body); string(body) == "x" && asked.Add(1) == 1 {
			w.Header().Set("Retry-After", "1")
			w.WriteHeader(http.StatusTooManyRequests)
		} else if string(body) == "x" {
			<-r.Context().Done()
		}
	})
	next := func(turn int) (Job, error) {
		j, err := post(turn)
		if turn > 0 {
			return j, errors.New("one is enough")
		}
		j.Again = func() (Job, error) {
			j.Body = []byte("anew")
			return j, nil
		}
		return j, err
	}
	s := counted(Load{Address: address, Connections: 1, Stages: []Stage{{For: 20 * time.Second}}, Next: next}.Run(t.Context()))
	if s.Latency.TotalCount() != 1 || s.Latency.Min() < time.Second.Microseconds() || s.Service.Max() >= time.Second.Microseconds() {
		t.Errorf("%d answered after %d µs, %d µs after it was sent again", s.Latency.TotalCount(), s.Latency.Min(), s.Service.Max())
	}
}

// TestInterruptedRatesAreOfWhatWasMeasured interrupts a run in its second sample: the others are not zero but missing.
func TestInterruptedRatesAreOfWhatWasMeasured(t *testing.T) {
	ctx, cancel := context.WithTimeout(t.Context(), 300*time.Millisecond)
	defer cancel()
	address := serve(t, func(http.ResponseWriter, *http.Request) {})
	var ended []int
	got := Load{
		Address: address, Connections: 1, Stages: []Stage{{For: time.Second}, {For: time.Second}}, Next: post,
		Begin: func(int) {}, End: func(i int) { ended = append(ended, i) },
	}.Run(ctx)
	if rates := got.Stages[0].Rates(); len(rates) != 1 || rates[0] == 0 || len(got.Stages[1].Rates()) != 0 || len(ended) != 1 {
		t.Errorf("rates %v and %v, ended stages %v", rates, got.Stages[1].Rates(), ended)
	}
}

// TestEachSecondIsTold also of those in which nothing comes back, and while nobody waits for whoever listens.
func TestEachSecondIsTold(t *testing.T) {
	release := make(chan struct{})
	address := serve(t, func(http.ResponseWriter, *http.Request) { <-release })
	defer close(release)
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
	defer cancel()
	Load{Address: address, Connections: 1, Stages: []Stage{{For: time.Hour}}, Next: post, Each: func(second int, s Second) {
		if second != 1 || s.Offered != 1 || s.Answered != 0 {
			t.Errorf("second %d: %+v", second, s)
		}
		cancel()
	}}.Run(ctx)
	if errors.Is(ctx.Err(), context.DeadlineExceeded) {
		t.Error("nobody was told")
	}
}

// TestConnectionsOpenWhenAllAreBusy answers nothing until a thousand requests are under way.
func TestConnectionsOpenWhenAllAreBusy(t *testing.T) {
	const all = 1000
	var waiting sync.WaitGroup
	waiting.Add(all)
	var arrived atomic.Int64
	address := serve(t, func(http.ResponseWriter, *http.Request) {
		arrived.Add(1)
		waiting.Done()
		waiting.Wait()
	})
	got := Load{Address: address, Connections: all, Stages: []Stage{{For: 30 * time.Second}}, Arrivals: AtOnce(all), Next: post}.Run(t.Context())
	if s := counted(got); int(s.Latency.TotalCount()) != all {
		t.Errorf("answered %d of %d, errors %v", s.Latency.TotalCount(), all, s.Errors)
	}
	few := Load{Address: serve(t, func(http.ResponseWriter, *http.Request) {}), Connections: all, Stages: []Stage{{Rate: 100, For: time.Second}}, Next: post}
	few.Arrivals = Poisson(few.Stages, 1)
	if s := counted(few.Run(t.Context())); s.Handshakes > openAtFirst {
		t.Errorf("%d connections for a load that one can carry", s.Handshakes)
	}
}
