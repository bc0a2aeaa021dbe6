package capability

import (
	"slices"
	"strings"
	"time"
)

// get gives the value of a name of an object.
func (v value) get(name string) (value, bool) {
	for _, f := range v.fields {
		if f.name == name {
			return f.value, true
		}
	}
	return value{}, false
}

// only reports whether v is an object without other names than these.
func (v value) only(names ...string) bool {
	return v.kind == kindObject &&
		!slices.ContainsFunc(v.fields, func(f field) bool { return !slices.Contains(names, f.name) })
}

// texts gives the items of an array of strings.
func (v value) texts() ([]string, bool) {
	if v.kind != kindArray {
		return nil, false
	}
	texts := make([]string, len(v.items))
	for i, item := range v.items {
		if item.kind != kindString {
			return nil, false
		}
		texts[i] = item.text
	}
	return texts, true
}

// whole gives a positive whole number that is the only field of an object.
func (v value) whole(name string) (int, bool) {
	n, found := v.get(name)
	const most = 1 << 31
	ok := found && v.only(name) && n.kind == kindNumber && n.number.fraction == 0 && !n.number.negative &&
		n.number.whole > 0 && n.number.whole < most
	return int(n.number.whole), ok
}

// clock gives a time of day, "HH:MM", since midnight.
func (v value) clock(name string) (time.Duration, bool) {
	const layout = "15:04"
	text, _ := v.get(name)
	if len(text.text) != len(layout) {
		return 0, false
	}
	t, err := time.Parse(layout, text.text)
	return time.Duration(t.Hour())*time.Hour + time.Duration(t.Minute())*time.Minute, err == nil
}

// zone gives a named time zone, UTC if the name is not there. "Local" would mean something else on every machine.
func (v value) zone(name string) (*time.Location, bool) {
	text, found := v.get(name)
	if !found {
		return time.UTC, true
	}
	if text.kind != kindString || text.text == "" || strings.EqualFold(text.text, "local") {
		return nil, false
	}
	zone, err := time.LoadLocation(text.text)
	return zone, err == nil
}
