package cli

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// composed are the codes that the source puts together from parts.
var composed = map[string][]string{
	`what + "_malformed"`:         {"aic_malformed", "pa_malformed"},
	`what + "_invalid"`:           {"aic_invalid", "pa_invalid", "principal_invalid"},
	`what + "_missing"`:           {"aic_missing", "pa_missing"},
	`what + "_extension_unknown"`: {"aic_extension_unknown", "pa_extension_unknown"},
	`step + "_expired"`:           {"chain_expired", "principal_expired"},
	`step + "_not_yet_valid"`:     {"chain_not_yet_valid", "principal_not_yet_valid"},
	`step + "_failed"`:            {"revocation_failed"},
	`code`:                        {"certificate_revoked", "agent_revoked", "delegation_revoked", "principal_revoked", "authority_revoked", "owner_revoked"},
}

// TestEveryRefusalIsExplained reads the source for the codes of all refusals. A code without a paragraph in explain.txt
// fails the test, and so does a paragraph that nothing in the program says.
func TestEveryRefusalIsExplained(t *testing.T) {
	t.Parallel()
	used := codesInSource(t, "../..")
	known := map[string]bool{}
	for _, e := range explanations() {
		if known[e.Code] {
			t.Errorf("%s is explained twice", e.Code)
		}
		known[e.Code] = true
		if len(used[e.Code]) == 0 {
			t.Errorf("%s is explained, and nothing says it", e.Code)
		}
		if e.Means == "" || e.Do == "" || len(e.Kinds) == 0 {
			t.Errorf("%s lacks a kind, a meaning, or what to do", e.Code)
		}
	}
	for code, places := range used {
		if !known[code] {
			t.Errorf("%s is not explained in explain.txt; it is said in %s", code, strings.Join(places, ", "))
		}
	}
	if len(used) < 150 {
		t.Errorf("only %d codes were found in the source: the search is broken", len(used))
	}
}

// codesInSource gives every code with the files that say it.
func codesInSource(t *testing.T, root string) map[string][]string {
	t.Helper()
	used := map[string][]string{}
	err := filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() || !strings.HasSuffix(path, ".go") || strings.HasSuffix(path, "_test.go") {
			return err
		}
		file, err := parser.ParseFile(token.NewFileSet(), path, nil, parser.SkipObjectResolution)
		if err != nil {
			return err
		}
		for _, code := range codesIn(t, path, file) {
			if !slices.Contains(used[code], path) {
				used[code] = append(used[code], path)
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return used
}

func codesIn(t *testing.T, path string, file *ast.File) (codes []string) {
	t.Helper()
	public := file.Name.Name == "agentcert" || file.Name.Name == "capability"
	ast.Inspect(file, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.FuncDecl: // what makes all refusals names no code itself
			return file.Name.Name != "fault" && n.Name.Name != "refuse"
		case *ast.ValueSpec: // const CodeX = "x"
			for i, name := range n.Names {
				if strings.HasPrefix(name.Name, "Code") && i < len(n.Values) {
					codes = append(codes, codeOf(t, path, n.Values[i])...)
				}
			}
		case *ast.CallExpr:
			called := nameOf(n.Fun)
			if called == "fault.New" || public && called == "refuse" && file.Name.Name == "agentcert" {
				codes = append(codes, codeOf(t, path, n.Args[1])...)
			}
		}
		return true
	})
	return codes
}

func nameOf(fun ast.Expr) string {
	switch f := fun.(type) {
	case *ast.Ident:
		return f.Name
	case *ast.SelectorExpr:
		if x, ok := f.X.(*ast.Ident); ok {
			return x.Name + "." + f.Sel.Name
		}
	}
	return ""
}

func codeOf(t *testing.T, path string, e ast.Expr) []string {
	t.Helper()
	switch e := e.(type) {
	case *ast.BasicLit:
		code, err := strconv.Unquote(e.Value)
		if err != nil {
			t.Fatal(err)
		}
		return []string{code}
	case *ast.Ident:
		if strings.HasPrefix(e.Name, "Code") {
			return nil // its declaration is met elsewhere
		}
		return known(t, path, e.Name)
	case *ast.BinaryExpr:
		left, ok := e.X.(*ast.Ident)
		right, literal := e.Y.(*ast.BasicLit)
		if ok && literal {
			return known(t, path, left.Name+" + "+right.Value)
		}
	}
	t.Errorf("%s: a code is put together in a way that this test does not know", path)
	return nil
}

func known(t *testing.T, path, expression string) []string {
	t.Helper()
	codes, ok := composed[expression]
	if !ok {
		t.Errorf("%s: the code %s is not among the composed ones", path, expression)
	}
	return codes
}
