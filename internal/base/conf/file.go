package conf

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"reflect"
	"strings"
	"unicode/utf8"
)

// wrongMax ends the reading of a file that is something else altogether.
const wrongMax = 50

// A reader walks the file token by token, so that every refusal knows its line.
type reader struct {
	*shape
	name string
	data []byte // comments blanked: same length and lines as the file
	json *json.Decoder
}

// file lays the file over the defaults. Wrong names and values are collected; wrong syntax ends the reading.
func (s *shape) file(name string, data []byte) {
	if len(data) > fileBytesMax {
		s.refuse(name, "larger than %v", Size(fileBytesMax))
		return
	}
	if !utf8.Valid(data) {
		s.refuse(name, "not UTF-8 text")
		return
	}
	plain := blank(data)
	r := &reader{shape: s, name: name, data: plain, json: json.NewDecoder(bytes.NewReader(plain))}
	if err := r.whole(); err != nil {
		s.wrong = append(s.wrong, err)
	}
}

// whole checks the syntax of the whole file, which is where the exact place of an error is known, then walks it.
func (r *reader) whole() error {
	var value json.RawMessage
	if err := json.Unmarshal(r.data, &value); err != nil {
		return r.syntax(err)
	}
	if value[0] != '{' {
		return r.at(int64(bytes.IndexByte(r.data, value[0])), "the file must be one object, { … }")
	}
	if _, err := r.json.Token(); err != nil { // the opening brace
		return err
	}
	return r.object("")
}

func (r *reader) syntax(err error) error {
	var wrong *json.SyntaxError
	switch {
	case len(bytes.TrimSpace(r.data)) == 0:
		return r.at(int64(len(r.data)), "empty; write at least {}")
	case !errors.As(err, &wrong):
		return r.at(0, "%s", err)
	case wrong.Offset >= int64(len(r.data)) && strings.HasPrefix(wrong.Error(), "unexpected end"):
		return r.at(wrong.Offset, "the file ends too early; a closing brace or quote may be missing")
	}
	return r.at(wrong.Offset-1, "%s", wrong)
}

// object reads the names and values up to the closing brace of a section; prefix is "" or ends in a dot.
func (r *reader) object(prefix string) error {
	seen := map[string]string{}
	for r.json.More() {
		token, err := r.json.Token()
		if err != nil {
			return err
		}
		name, _ := token.(string) // the syntax check saw to it
		where := r.place(r.json.InputOffset() - 1)
		if len(r.wrong) >= wrongMax {
			return &Error{Origin: where, Text: "too many mistakes; the rest is not read"}
		}
		if first, twice := seen[name]; twice {
			r.refuse(where, "%s stands twice; first in %s", prefix+name, first)
		}
		seen[name] = where
		if err := r.member(prefix, name, where); err != nil {
			return err
		}
	}
	_, err := r.json.Token()
	return err
}

// member reads the value of one name.
func (r *reader) member(prefix, name, where string) error {
	path := prefix + name
	dotted := strings.Contains(name, ".")
	if r.sections[path] && !dotted {
		return r.section(path)
	}
	var raw json.RawMessage
	if err := r.json.Decode(&raw); err != nil {
		return err
	}
	f, known := r.fields[path]
	if !known || dotted {
		r.refuse(where, "%s is not a setting%s", path, suggestion(path, r.namesBelow(prefix)))
		return nil
	}
	where = r.place(r.json.InputOffset() - int64(len(raw)))
	if err := setJSON(f.value, raw); err != nil {
		r.refuse(where, "%s: %v", path, err)
		return nil
	}
	f.origin = where[:strings.LastIndexByte(where, ':')] // the line is enough
	return nil
}

func (r *reader) section(path string) error {
	open, err := r.json.Token()
	if err != nil {
		return err
	}
	if open != json.Delim('{') {
		return r.at(r.json.InputOffset()-1, "%s is a section: { … } is expected", path)
	}
	return r.object(path + ".")
}

// namesBelow gives the settings and sections that may stand in the section of this prefix.
func (r *reader) namesBelow(prefix string) func(yield func(string) bool) {
	return func(yield func(string) bool) {
		for _, names := range []func(func(string) bool){maps.Keys(r.fields), maps.Keys(r.sections)} {
			for name := range names {
				rest, below := strings.CutPrefix(name, prefix)
				if below && !strings.Contains(rest, ".") && !yield(name) {
					return
				}
			}
		}
	}
}

// setJSON checks that the JSON form fits the type and lets setText read the text in it.
func setJSON(v reflect.Value, raw json.RawMessage) error {
	form := formOf(v.Type())
	if jsonForm(raw) != form {
		return fmt.Errorf("%s is expected, %s stands here", form, jsonForm(raw))
	}
	switch form {
	case "a string":
		var text string
		if err := json.Unmarshal(raw, &text); err != nil {
			return err
		}
		return setText(v, text)
	case "a list":
		return setArray(v, raw)
	default:
		return setText(v, string(raw))
	}
}

func setArray(v reflect.Value, raw json.RawMessage) error {
	var elements []json.RawMessage
	if err := json.Unmarshal(raw, &elements); err != nil {
		return err
	}
	list := reflect.MakeSlice(v.Type(), len(elements), len(elements))
	for i, element := range elements {
		if string(element) == `""` {
			return fmt.Errorf("element %d is empty", i+1)
		}
		if err := setJSON(list.Index(i), element); err != nil {
			return fmt.Errorf("element %d: %w", i+1, err)
		}
	}
	v.Set(list)
	return nil
}

func jsonForm(raw json.RawMessage) string {
	switch raw[0] {
	case '"':
		return "a string"
	case 't', 'f':
		return "true or false"
	case '[':
		return "a list"
	case '{':
		return "a section"
	case 'n':
		return "null"
	}
	if bytes.ContainsAny(raw, ".eE") {
		return "a fraction"
	}
	return "a whole number"
}

// at makes an error that stands at a byte of the file.
func (r *reader) at(offset int64, format string, args ...any) error {
	return &Error{Origin: r.place(offset), Text: fmt.Sprintf(format, args...)}
}

// place gives "file:line:column" of a byte, both counted from 1.
func (r *reader) place(offset int64) string {
	before := r.data[:min(max(offset, 0), int64(len(r.data)))]
	line := bytes.Count(before, []byte("\n")) + 1
	column := len(before) - bytes.LastIndexByte(before, '\n')
	return fmt.Sprintf("%s:%d:%d", r.name, line, column)
}

// blank replaces // comments and trailing commas by spaces, so that JSON of the same length remains.
func blank(data []byte) []byte {
	plain := bytes.Clone(data)
	comma := -1 // a comma after which only space and comments came
	for i := 0; i < len(plain); i++ {
		switch c := plain[i]; {
		case c == '"':
			i, comma = stringEnd(plain, i), -1
		case c == '/' && i+1 < len(plain) && plain[i+1] == '/':
			for ; i < len(plain) && plain[i] != '\n'; i++ {
				plain[i] = ' '
			}
		case c == ',':
			comma = i
		case (c == '}' || c == ']') && comma >= 0:
			plain[comma], comma = ' ', -1
		case c != ' ' && c != '\t' && c != '\r' && c != '\n':
			comma = -1
		}
	}
	return plain
}

// stringEnd gives the index of the quote that closes the string opened at start, or the last index.
func stringEnd(data []byte, start int) int {
	for i := start + 1; i < len(data); i++ {
		switch data[i] {
		case '\\':
			i++
		case '"', '\n': // a string does not span lines; the decoder says so
			return i
		}
	}
	return len(data) - 1
}
