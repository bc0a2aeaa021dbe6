package capability

import (
	"bytes"
	"encoding/json"
	"io"
	"slices"
	"strconv"
	"strings"
	"unicode/utf16"
	"unicode/utf8"
)

// Parameters are parsed bounds: JSON in which a number is an upper limit, a string or boolean must be equal, an array
// lists what is allowed, and an object applies this to each of its names. The zero value stands for no parameters.
type Parameters struct{ root value }

type kind uint8

const (
	kindObject kind = iota // the zero value is the empty object: no parameters
	kindArray
	kindString
	kindNumber
	kindBool
)

type value struct {
	kind   kind
	text   string
	number decimal
	truth  bool
	items  []value
	fields []field // sorted as RFC 8785 section 3.2.3 sorts names
}

type field struct {
	name  string
	value value
}

// ParseParameters reads one JSON value. It refuses null, names that occur twice, more than 32 levels, numbers of more
// than 17 digits or with an exponent, text that is not exact UTF-8, and more than 512 octets in canonical form. The
// error is a *Refusal.
func ParseParameters(raw []byte) (Parameters, error) {
	if len(raw) > MaxParameters {
		return Parameters{}, refuse(CodeParameterMalformed, "the parameters are longer than %d octets", MaxParameters)
	}
	if !utf8.Valid(raw) || !json.Valid(raw) {
		return Parameters{}, refuse(CodeParameterMalformed, "the parameters are not valid JSON")
	}
	dec := json.NewDecoder(bytes.NewReader(raw))
	dec.UseNumber()
	root, err := readValue(dec, 1)
	if err != nil {
		return Parameters{}, err
	}
	if _, err := dec.Token(); err != io.EOF {
		return Parameters{}, refuse(CodeParameterMalformed, "something follows the parameters")
	}
	p := Parameters{root}
	if n := len(p.String()); n > MaxCanonical {
		return Parameters{}, refuse(CodeParameterMalformed, "the parameters take %d octets in canonical form; %d are allowed", n, MaxCanonical)
	}
	return p, nil
}

func readValue(dec *json.Decoder, depth int) (value, error) {
	if depth > maxDepth {
		return value{}, refuse(CodeParameterMalformed, "the parameters are nested deeper than %d levels", maxDepth)
	}
	token, err := dec.Token()
	if err != nil {
		return value{}, refuse(CodeParameterMalformed, "the parameters are not valid JSON")
	}
	switch t := token.(type) {
	case json.Delim:
		if t == '[' {
			return readArray(dec, depth)
		}
		return readObject(dec, depth)
	case string:
		return readString(t)
	case json.Number:
		n, err := parseDecimal(t.String())
		return value{kind: kindNumber, number: n}, err
	case bool:
		return value{kind: kindBool, truth: t}, nil
	default:
		return value{}, refuse(CodeParameterMalformed, "null is no bound of a parameter")
	}
}

// readString refuses U+FFFD, into which the decoder turns half surrogate pairs: two different texts would be equal.
func readString(s string) (value, error) {
	if strings.ContainsRune(s, utf8.RuneError) {
		return value{}, refuse(CodeParameterMalformed, "a parameter holds text that is not valid Unicode")
	}
	return value{kind: kindString, text: s}, nil
}

func readArray(dec *json.Decoder, depth int) (value, error) {
	v := value{kind: kindArray}
	for dec.More() {
		item, err := readValue(dec, depth+1)
		if err != nil {
			return value{}, err
		}
		v.items = append(v.items, item)
	}
	_, err := dec.Token()
	return v, err
}

func readObject(dec *json.Decoder, depth int) (value, error) {
	v := value{kind: kindObject}
	for dec.More() {
		name, err := readValue(dec, depth)
		if err != nil {
			return value{}, err
		}
		item, err := readValue(dec, depth+1)
		if err != nil {
			return value{}, err
		}
		v.fields = append(v.fields, field{name.text, item})
	}
	slices.SortFunc(v.fields, func(a, b field) int { return compareNames(a.name, b.name) })
	for i := 1; i < len(v.fields); i++ {
		if v.fields[i].name == v.fields[i-1].name {
			return value{}, refuse(CodeParameterMalformed, "the parameter %q stands twice", clip(v.fields[i].name))
		}
	}
	_, err := dec.Token()
	return v, err
}

// compareNames orders by UTF-16 code units (RFC 8785 section 3.2.3).
func compareNames(a, b string) int {
	return slices.Compare(utf16.Encode([]rune(a)), utf16.Encode([]rune(b)))
}

// String gives the canonical form: RFC 8785, except that a number keeps its exact decimal value.
func (p Parameters) String() string { return string(p.root.append(nil)) }

func (v value) append(b []byte) []byte {
	switch v.kind {
	case kindString:
		return appendString(b, v.text)
	case kindNumber:
		return append(b, v.number.String()...)
	case kindBool:
		return strconv.AppendBool(b, v.truth)
	case kindArray:
		b = append(b, '[')
		for i, item := range v.items {
			if i > 0 {
				b = append(b, ',')
			}
			b = item.append(b)
		}
		return append(b, ']')
	default:
		b = append(b, '{')
		for i, f := range v.fields {
			if i > 0 {
				b = append(b, ',')
			}
			b = append(appendString(b, f.name), ':')
			b = f.value.append(b)
		}
		return append(b, '}')
	}
}

// appendString quotes as RFC 8785 section 3.2.2.2 does: only what must be escaped is.
func appendString(b []byte, s string) []byte {
	const short = "\b\t\n\f\r\"\\"
	b = append(b, '"')
	for _, r := range s {
		if i := strings.IndexRune(short, r); i >= 0 {
			b = append(b, '\\', `btnfr"\`[i])
		} else if r < ' ' {
			b = append(b, '\\', 'u', '0', '0', "01"[r>>4], "0123456789abcdef"[r&15])
		} else {
			b = utf8.AppendRune(b, r)
		}
	}
	return append(b, '"')
}
