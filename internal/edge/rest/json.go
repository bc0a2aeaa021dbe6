package rest

import (
	"errors"
	"fmt"
	"io"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
)

// maxDepth bounds the nesting of JSON from outside.
const maxDepth = 32

// parseJSON reads strict JSON: names that are unknown, doubled or in the wrong case, invalid UTF-8, a second value and
// nesting beyond maxDepth are refused. The error's text is fit for the caller.
func parseJSON(data []byte, v any) error {
	if depth(data) > maxDepth {
		return fmt.Errorf("it is nested deeper than %d levels", maxDepth)
	}
	if err := json.Unmarshal(data, v, json.RejectUnknownMembers(true)); err != nil {
		return plainly(err)
	}
	return nil
}

// plainly says what is wrong with JSON in words that name no Go type.
func plainly(err error) error {
	var syntactic *jsontext.SyntacticError
	var semantic *json.SemanticError
	switch {
	case errors.Is(err, jsontext.ErrDuplicateName) && errors.As(err, &syntactic):
		return fmt.Errorf("the name %.80s stands twice", syntactic.JSONPointer)
	case errors.As(err, &syntactic):
		return fmt.Errorf("it is not valid JSON at byte %d", syntactic.ByteOffset)
	case errors.Is(err, json.ErrUnknownName) && errors.As(err, &semantic):
		return fmt.Errorf("the name %.80s is not known", semantic.JSONPointer)
	case errors.As(err, &semantic):
		return fmt.Errorf("a %s does not fit at %.80q", semantic.JSONKind, semantic.JSONPointer)
	}
	return errors.New("it ends early")
}

// depth gives the deepest nesting of arrays and objects in JSON text. Of text that is not JSON it gives some number.
func depth(data []byte) int {
	level, deepest, quoted := 0, 0, false
	for i := 0; i < len(data); i++ {
		switch c := data[i]; {
		case quoted && c == '\\':
			i++
		case c == '"':
			quoted = !quoted
		case quoted:
		case c == '{' || c == '[':
			level++
			deepest = max(deepest, level)
		case c == '}' || c == ']':
			level--
		}
	}
	return deepest
}

func formatJSON(v any) ([]byte, error) {
	body, err := json.Marshal(v)
	if err != nil {
		return nil, fmt.Errorf("writing the answer: %w", err)
	}
	return body, nil
}

// writeJSON writes v only when all of it has a JSON form.
func writeJSON(w io.Writer, v any) error {
	body, err := formatJSON(v)
	if err != nil {
		return err
	}
	_, _ = w.Write(body) // a caller who hung up is no fault of ours
	return nil
}
