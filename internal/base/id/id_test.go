package id

import (
	"math/big"
	"testing"
	"time"

	"pgregory.net/rapid"
)

func TestNewSortsByTime(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		ms := rapid.Int64Range(0, 1<<47).Draw(t, "ms")
		early, late := New(Agent, time.UnixMilli(ms)), New(Agent, time.UnixMilli(ms+1))
		if early >= late {
			t.Fatalf("%s (t) does not sort before %s (t + 1 ms)", early, late)
		}
		if !Is(Agent, early) || Is(Person, early) {
			t.Fatalf("%s is not recognised as an agent's identifier alone", early)
		}
	})
}

func TestParse(t *testing.T) {
	good := New(Person, time.Now())
	for _, bad := range []string{"", "per_", good + "0", good[:len(good)-1], "agt" + good[3:], "per_ILOU" + good[8:], "PER" + good[3:]} {
		if _, err := Parse(Person, bad); err == nil {
			t.Errorf("Parse(%q) accepted it", bad)
		}
	}
	if got, err := Parse(Person, good); err != nil || got != good {
		t.Errorf("Parse(%q) = %q, %v", good, got, err)
	}
}

func TestSerialsNeverGoBack(t *testing.T) {
	var s Serials
	now := time.UnixMilli(1_800_000_000_000)
	first := s.Next(now)
	back := s.Next(now.Add(-time.Hour))
	if back.String()[:12] != first.String()[:12] {
		t.Errorf("the clock went back and the prefix with it: %s after %s", back, first)
	}
	var restarted Serials
	restarted.Resume(first)
	if got := restarted.Next(now.Add(-time.Hour)); got.String()[:12] != first.String()[:12] {
		t.Errorf("after a restart with a clock set back: %s after %s", got, first)
	}
}

func TestSerialIsPositiveAndShort(t *testing.T) {
	var s Serials
	n := s.Next(time.UnixMilli(1_800_000_000_000)).Big()
	if n.Sign() <= 0 || n.BitLen() > 159 {
		t.Errorf("serial %x is not a positive number of at most 20 octets", n)
	}
	if got := SerialOf(n).Big(); got.Cmp(n) != 0 {
		t.Errorf("SerialOf changed %x to %x", n, got)
	}
}

func FuzzParseSerial(f *testing.F) {
	f.Add("01:ab:ff")
	f.Add("zz")
	f.Fuzz(func(t *testing.T, text string) {
		s, err := ParseSerial(text)
		if err != nil {
			return
		}
		again, err := ParseSerial(s.String())
		if err != nil || new(big.Int).SetBytes(again).Cmp(s.Big()) != 0 {
			t.Fatalf("%q gives %s, which reads back as %s, %v", text, s, again, err)
		}
	})
}
