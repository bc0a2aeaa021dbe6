package store

import (
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"
)

var positionsGen = rapid.SliceOf(rapid.Int64Range(0, 60))

func TestSpansHoldWhatTheyAreMadeOf(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		positions, other := positionsGen.Draw(t, "positions"), positionsGen.Draw(t, "other")
		s := spansOf(slices.Clone(positions))
		both := join([]spans{s, spansOf(slices.Clone(other))})
		met := false
		for p := range int64(62) {
			mine, theirs := slices.Contains(positions, p), slices.Contains(other, p)
			if s.has(p) != mine || both.has(p) != (mine || theirs) {
				t.Fatalf("position %d: %v of %v", p, s, positions)
			}
			met = met || mine && theirs
		}
		if s.meets(spansOf(slices.Clone(other))) != met {
			t.Fatalf("%v meets %v: want %v", s, other, met)
		}
		again, err := parseSpans(s.String())
		if diff := cmp.Diff(s, again, cmp.AllowUnexported(span{})); err != nil || diff != "" {
			t.Fatalf("written and read: %v\n%s", err, diff)
		}
	})
}

func FuzzParseSpans(f *testing.F) {
	for _, seed := range []string{"", "1-1", "1-5,7-9", "5-1", "1-5,5-6", "-1-2", "a"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		s, err := parseSpans(text)
		if err != nil {
			return
		}
		for i, one := range s {
			if one.first > one.last || i > 0 && one.first <= s[i-1].last {
				t.Errorf("%q gave %v", text, s)
			}
		}
	})
}
