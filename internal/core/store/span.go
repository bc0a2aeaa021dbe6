package store

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"
)

// spans names positions as a sorted list of ranges, both ends included, written "1-40,42-99".
type spans []span

type span struct{ first, last int64 }

// spansOf gives the spans that hold exactly the given positions.
func spansOf(positions []int64) spans {
	slices.Sort(positions)
	var s spans
	for _, p := range positions {
		if n := len(s); n > 0 && p <= s[n-1].last+1 {
			s[n-1].last = p
		} else {
			s = append(s, span{p, p})
		}
	}
	return s
}

func (s spans) String() string {
	parts := make([]string, len(s))
	for i, one := range s {
		parts[i] = strconv.FormatInt(one.first, 10) + "-" + strconv.FormatInt(one.last, 10)
	}
	return strings.Join(parts, ",")
}

// parseSpans reads what String wrote, and nothing else.
func parseSpans(text string) (spans, error) {
	if text == "" {
		return nil, nil
	}
	var s spans
	for part := range strings.SplitSeq(text, ",") {
		first, last, ok := strings.Cut(part, "-")
		a, errA := strconv.ParseInt(first, 10, 64)
		b, errB := strconv.ParseInt(last, 10, 64)
		if !ok || errA != nil || errB != nil || a > b || a < 0 || len(s) > 0 && a <= s[len(s)-1].last {
			return nil, fmt.Errorf("%q is no list of positions", text)
		}
		s = append(s, span{a, b})
	}
	return s, nil
}

// has reports whether position p is in s.
func (s spans) has(p int64) bool {
	i, found := slices.BinarySearchFunc(s, p, func(one span, p int64) int {
		switch {
		case one.last < p:
			return -1
		case one.first > p:
			return 1
		}
		return 0
	})
	return found && i < len(s)
}

// bounds gives the lowest and the highest position; s is not empty.
func (s spans) bounds() (first, last int64) { return s[0].first, s[len(s)-1].last }

// join gives the spans that hold what any of lists holds.
func join(lists []spans) spans {
	all := slices.Concat(lists...)
	slices.SortFunc(all, func(a, b span) int { return cmp.Compare(a.first, b.first) })
	var s spans
	for _, one := range all {
		if n := len(s); n > 0 && one.first <= s[n-1].last+1 {
			s[n-1].last = max(s[n-1].last, one.last)
		} else {
			s = append(s, one)
		}
	}
	return s
}

// meets reports whether s and other have a position in common.
func (s spans) meets(other spans) bool {
	for i, j := 0, 0; i < len(s) && j < len(other); {
		switch {
		case s[i].last < other[j].first:
			i++
		case other[j].last < s[i].first:
			j++
		default:
			return true
		}
	}
	return false
}
