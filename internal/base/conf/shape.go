package conf

import (
	"encoding"
	"fmt"
	"iter"
	"reflect"
	"strconv"
	"strings"
	"time"
)

// A field is one setting of the struct that is being filled.
type field struct {
	name   string // dotted
	doc    string
	origin string
	value  reflect.Value // addressable
}

// secret reports whether the field is a Secret or a list of them.
func (f *field) secret() bool {
	t := f.value.Type()
	return t == reflect.TypeFor[Secret]() || t == reflect.TypeFor[[]Secret]()
}

// A shape is the tagged part of a struct, flattened, and what was found wrong while filling it.
type shape struct {
	fields   map[string]*field
	sections map[string]bool // dotted names of nested structs
	wrong    []error
}

// shapeOf reads the tags. Its errors are mistakes of the program, found by any test that loads the struct.
func shapeOf(into any) (*shape, error) {
	root := reflect.ValueOf(into)
	if root.Kind() != reflect.Pointer || root.Elem().Kind() != reflect.Struct {
		return nil, fmt.Errorf("configuration must be a pointer to a struct, not %T", into)
	}
	s := &shape{fields: map[string]*field{}, sections: map[string]bool{}}
	variables := map[string]string{}
	return s, s.add("", root.Elem(), variables)
}

func (s *shape) add(prefix string, section reflect.Value, variables map[string]string) error {
	for i := range section.NumField() {
		declared := section.Type().Field(i)
		name, tagged := declared.Tag.Lookup("conf")
		if !tagged {
			continue
		}
		if !plainName(name) || !declared.IsExported() {
			return fmt.Errorf("field %s of %s: a setting is an exported field with a lower-case name", declared.Name, section.Type())
		}
		name, value := prefix+name, section.Field(i)
		variable := EnvironmentName(name)
		if other, taken := variables[variable]; taken {
			return fmt.Errorf("settings %s and %s share the variable %s", other, name, variable)
		}
		variables[variable] = name
		if err := s.addOne(name, declared, value, variables); err != nil {
			return err
		}
	}
	return nil
}

func (s *shape) addOne(name string, declared reflect.StructField, value reflect.Value, variables map[string]string) error {
	switch form := formOf(value.Type()); {
	case form != "":
		s.fields[name] = &field{name: name, doc: declared.Tag.Get("doc"), origin: "default", value: value}
		return nil
	case value.Kind() == reflect.Struct:
		s.sections[name] = true
		return s.add(name+".", value, variables)
	default:
		return fmt.Errorf("setting %s: type %s cannot be configured", name, value.Type())
	}
}

func plainName(name string) bool {
	return name != "" && strings.Trim(name, "abcdefghijklmnopqrstuvwxyz0123456789_") == ""
}

// formOf says how a type is written in the file, in words for an error; "" for a type that no setting can have.
func formOf(t reflect.Type) string {
	switch {
	case t == reflect.TypeFor[time.Duration](), reflect.PointerTo(t).Implements(reflect.TypeFor[encoding.TextUnmarshaler]()):
		return "a string"
	case t.Kind() == reflect.String:
		return "a string"
	case t.Kind() == reflect.Bool:
		return "true or false"
	case t.Kind() >= reflect.Int && t.Kind() <= reflect.Uint64:
		return "a whole number"
	case t.Kind() == reflect.Slice && t.Elem().Kind() != reflect.Slice && formOf(t.Elem()) != "":
		return "a list"
	}
	return ""
}

// setText reads one value as people write it in the environment; a list is separated by commas. A type with its own
// UnmarshalText words its own error, so that Secret and URL never see their text repeated.
func setText(v reflect.Value, text string) error {
	if u, ok := v.Addr().Interface().(encoding.TextUnmarshaler); ok {
		return u.UnmarshalText([]byte(text))
	}
	if v.Type() == reflect.TypeFor[time.Duration]() {
		return (*Duration)(v.Addr().Interface().(*time.Duration)).UnmarshalText([]byte(text))
	}
	switch kind := v.Kind(); {
	case kind == reflect.String:
		v.SetString(text)
		return nil
	case kind == reflect.Bool:
		return setBool(v, text)
	case kind == reflect.Slice:
		return setList(v, splitList(text))
	case v.CanInt():
		n, err := strconv.ParseInt(text, 10, v.Type().Bits())
		v.SetInt(n)
		return numberError(v.Type(), text, err)
	default:
		n, err := strconv.ParseUint(text, 10, v.Type().Bits())
		v.SetUint(n)
		return numberError(v.Type(), text, err)
	}
}

func setBool(v reflect.Value, text string) error {
	if text != "true" && text != "false" {
		return fmt.Errorf("%s is neither true nor false", quote(text))
	}
	v.SetBool(text == "true")
	return nil
}

func setList(v reflect.Value, texts []string) error {
	list := reflect.MakeSlice(v.Type(), len(texts), len(texts))
	for i, text := range texts {
		if text == "" {
			return fmt.Errorf("element %d is empty", i+1)
		}
		if err := setText(list.Index(i), text); err != nil {
			return fmt.Errorf("element %d: %w", i+1, err)
		}
	}
	v.Set(list)
	return nil
}

func splitList(text string) []string {
	if strings.TrimSpace(text) == "" {
		return nil
	}
	parts := strings.Split(text, ",")
	for i := range parts {
		parts[i] = strings.TrimSpace(parts[i])
	}
	return parts
}

func numberError(t reflect.Type, text string, err error) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("%s is not a whole number that fits %s", quote(text), t.Kind())
}

// show writes a value as setText reads it, secrets masked.
func show(v reflect.Value) string {
	if v.Type() == reflect.TypeFor[time.Duration]() {
		return Duration(v.Int()).String()
	}
	if m, ok := v.Addr().Interface().(encoding.TextMarshaler); ok {
		text, err := m.MarshalText()
		if err != nil {
			return "unprintable: " + err.Error()
		}
		return string(text)
	}
	if v.Kind() != reflect.Slice {
		return fmt.Sprint(v.Interface())
	}
	parts := make([]string, v.Len())
	for i := range parts {
		parts[i] = show(v.Index(i))
	}
	return strings.Join(parts, ", ")
}

// quote shows a rejected text, cut so that an error stays a line.
func quote(text string) string {
	const shown = 60
	if len(text) > shown {
		return strconv.Quote(strings.ToValidUTF8(text[:shown], "")) + "…"
	}
	return strconv.Quote(text)
}

// suggestion gives "; did you mean …?" for the nearest known name, or nothing.
func suggestion(wrong string, known iter.Seq[string]) string {
	best, least := "", 3
	for name := range known {
		d := distance(strings.ToLower(wrong), strings.ToLower(name))
		if d < least || d == least && best != "" && name < best {
			best, least = name, d
		}
	}
	if best == "" {
		return ""
	}
	return fmt.Sprintf("; did you mean %q?", best)
}

// distance is the number of single-byte edits between two names (Levenshtein).
func distance(a, b string) int {
	const longest = 100 // bounds the quadratic work on names from outside
	if len(a) > longest || len(b) > longest {
		return longest
	}
	row := make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := range len(a) {
		diagonal := row[0]
		row[0] = i + 1
		for j := range len(b) {
			swap := diagonal
			if a[i] != b[j] {
				swap++
			}
			diagonal = row[j+1]
			row[j+1] = min(swap, row[j]+1, row[j+1]+1)
		}
	}
	return row[len(b)]
}
