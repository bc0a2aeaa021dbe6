// Package conf turns one file, the environment and the command line into the configuration structs of the rooms.
//
// Each room declares a plain struct with its defaults filled in; the server puts them side by side as sections of one
// struct and calls Load. A field takes part if it has a tag:
//
//	type Config struct {
//		Listen string        `conf:"listen" doc:"address of the HTTPS listener"`
//		Body   conf.Size     `conf:"body_max" doc:"largest accepted request body"`
//		Idle   time.Duration `conf:"idle" doc:"how long a silent connection is kept"`
//	}
//
// The file is JSON, with // comments and trailing commas because people edit it by hand. Later layers win: default,
// file, environment (CHANCERY_SECTION_NAME), command line; where each value came from is remembered. What is not
// understood is refused with its line, all of it in one go: a misspelt limit must not silently be no limit. A program
// may lay a preset, other defaults for a kind of machine, between the defaults and the file. Names are
// compared exactly, a name may stand once, null is not a value, and a list replaces the list below it.
//
// The room reads no file and no environment itself, and knows no room that it configures.
package conf

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
)

// fileBytesMax bounds the configuration file; what people write by hand is far smaller.
const fileBytesMax = 1 << 20

// envPrefix starts the name of every environment variable that is looked at.
const envPrefix = "CHANCERY_"

// Sources are the layers above the defaults, in the order in which they win. An empty layer is skipped.
type Sources struct {
	Preset   map[string]string // dotted setting name to text, from the program itself
	PresetOf string            // how origins call the preset
	FileName string            // how errors and origins call the file
	File     []byte            // contents of the file; nil means that there is none
	Environ  []string          // NAME=value, as os.Environ gives it
	Flags    map[string]string // dotted setting name to text, from the command line
}

// A Setting is one value of the effective configuration, fit for showing: secrets are masked.
type Setting struct {
	Name   string `json:"name"`   // dotted: "server.listen"
	Value  string `json:"value"`  // as it would be written in the environment
	Origin string `json:"origin"` // "default", the preset's name, "chancery.json:12", "environment CHANCERY_SERVER_LISTEN", "flag --server.listen"
	Doc    string `json:"doc"`
}

// An Error is one thing wrong with the configuration. Load joins several with errors.Join.
type Error struct {
	Origin string // where it stands: "chancery.json:12:5", "environment CHANCERY_SERVER_LISTEN", "flag --server.listen"
	Text   string // what is wrong and what is expected
}

// Error gives origin and text on one line. It never holds the value of a Secret.
func (e *Error) Error() string { return e.Origin + ": " + e.Text }

// Load lays the sources over the defaults that stand in the struct that into points to, and gives every setting with
// its origin, sorted by name. Values of the kinds string, bool, whole number, time.Duration, any encoding.TextUnmarshaler
// and slices of these are understood. After an error the struct may be half filled and must not be used.
func Load(into any, s Sources) ([]Setting, error) {
	shape, err := shapeOf(into)
	if err != nil {
		return nil, err
	}
	shape.preset(s.PresetOf, s.Preset)
	if s.File != nil {
		shape.file(s.FileName, s.File)
	}
	shape.environment(s.Environ)
	shape.flags(s.Flags)
	if err := errors.Join(shape.wrong...); err != nil {
		return nil, err
	}
	return shape.settings(), nil
}

// EnvironmentName gives the variable that sets the setting of this dotted name.
func EnvironmentName(setting string) string {
	return envPrefix + strings.ToUpper(strings.ReplaceAll(setting, ".", "_"))
}

// environment takes the variables that name a setting. A variable that starts like a section but names no setting in
// it is refused; other CHANCERY_ variables belong to other parts of the program.
func (s *shape) environment(environ []string) {
	byVariable := make(map[string]*field, len(s.fields))
	for name, f := range s.fields {
		byVariable[EnvironmentName(name)] = f
	}
	for _, pair := range slices.Sorted(slices.Values(environ)) {
		variable, text, _ := strings.Cut(pair, "=")
		origin := "environment " + variable
		if f, ok := byVariable[variable]; ok {
			s.take(f, origin, text)
		} else if s.inSection(variable) {
			s.refuse(origin, "no setting has this variable%s", suggestion(variable, maps.Keys(byVariable)))
		}
	}
}

func (s *shape) inSection(variable string) bool {
	for section := range s.sections {
		if strings.HasPrefix(variable, EnvironmentName(section)+"_") {
			return true
		}
	}
	return false
}

func (s *shape) preset(origin string, values map[string]string) {
	for _, name := range slices.Sorted(maps.Keys(values)) {
		if f, ok := s.fields[name]; ok {
			s.take(f, origin, values[name])
		} else {
			s.refuse(origin, "no such setting: %s", name)
		}
	}
}

func (s *shape) flags(flags map[string]string) {
	for _, name := range slices.Sorted(maps.Keys(flags)) {
		origin := "flag --" + name
		f, ok := s.fields[name]
		switch {
		case !ok:
			s.refuse(origin, "no such setting%s", suggestion(name, maps.Keys(s.fields)))
		case f.secret():
			s.refuse(origin, "a secret on the command line is seen by everyone on this machine; use the environment variable %s",
				EnvironmentName(name))
		default:
			s.take(f, origin, flags[name])
		}
	}
}

func (s *shape) take(f *field, origin, text string) {
	if err := setText(f.value, text); err != nil {
		s.refuse(origin, "%s: %v", f.name, err)
		return
	}
	f.origin = origin
}

func (s *shape) refuse(origin, format string, args ...any) {
	s.wrong = append(s.wrong, &Error{Origin: origin, Text: fmt.Sprintf(format, args...)})
}

func (s *shape) settings() []Setting {
	list := make([]Setting, 0, len(s.fields))
	for _, f := range s.fields {
		list = append(list, Setting{Name: f.name, Value: show(f.value), Origin: f.origin, Doc: f.doc})
	}
	slices.SortFunc(list, func(a, b Setting) int { return cmp.Compare(a.Name, b.Name) })
	return list
}
