// Package page writes one self-contained HTML page with pictures from plain data: text, figures, charts and tables. The
// page loads nothing from elsewhere and reads fully without scripts. It knows nothing about what it shows.
package page

import (
	"bytes"
	_ "embed"
	"fmt"
	"html/template"
	"io"
	"strings"
)

// Page is what one page says, from top to bottom. Every text is plain text; it is escaped.
type Page struct {
	Title    string
	Lead     []string  // paragraphs: purpose, expectation
	Verdicts []Verdict // what was to be reached and what was
	Figures  []Fact    // few big numbers at the top
	Facts    []Group   // configuration, machine, database
	Charts   []Chart
	Tables   []Table
	Notes    []string // what makes the results doubtful
	Links    []Link   // to sister pages, relative
}

// State says how a verdict came out.
type State int

// The states of a verdict. A verdict without a state was not judged.
const (
	Unjudged State = iota
	Met
	Missed
)

// String is the word that the page shows.
func (s State) String() string {
	switch s {
	case Met:
		return "met"
	case Missed:
		return "missed"
	}
	return "not judged"
}

// Sign is the symbol beside the word: colour is never the only difference.
func (s State) Sign() string {
	switch s {
	case Met:
		return "✓"
	case Missed:
		return "✗"
	}
	return "–"
}

// Class is the state's name in the style sheet.
func (s State) Class() string {
	switch s {
	case Met:
		return "met"
	case Missed:
		return "missed"
	}
	return "open"
}

// Verdict is one expectation and what was measured against it.
type Verdict struct {
	Text, Measured string
	State          State
}

// Fact is a name with a value.
type Fact struct{ Name, Value string }

// Group is a titled list of facts.
type Group struct {
	Title string
	Facts []Fact
}

// Link leads to a sister page. A scheme other than http, https and mailto is not written.
type Link struct{ Text, Href string }

// Kind is the way a chart is drawn.
type Kind int

// The kinds of charts.
const (
	Lines Kind = iota
	Stack      // stacked areas; the value axis is never logarithmic
	Bars       // side by side for several series
)

// Chart is one picture. Values that are not finite, and values that a logarithmic axis cannot show, leave a gap.
type Chart struct {
	Title, Note string
	// X and Y name the axes with their unit. The unit of X shapes its ticks: "time, s" or "time (s)" gives seconds and
	// minutes; a logarithmic X whose label contains "percentile" or "quantile" or has the unit % holds 1/(1-q) and gets
	// 50%, 90%, 99% and so on.
	X, Y       string
	Kind       Kind
	LogX, LogY bool
	Series     []Series // the first sixteen are drawn
	Marks      []Mark   // vertical lines with a label: where a phase begins
	Names      []string // Bars only: the names of the bars at X = 0, 1, 2 and so on
	Shaded     []Span   // stretches of the X axis that count differently; Bars have none
	Shade      string   // what the shaded stretches are
}

// Span is a stretch of the X axis.
type Span struct{ From, To float64 }

// Series is one curve. X and Y are parallel; what one has more than the other is ignored.
type Series struct {
	Name string
	X, Y []float64
	// Second marks the other report of a comparison. It is drawn dashed, in the colour of the first series with its name,
	// or else of the first series with its place; of a Stack only the edges are drawn.
	Second bool
}

// Mark is a labelled place on the X axis.
type Mark struct {
	At    float64
	Label string
}

// Table is a titled table. Cells that look like numbers are aligned to the right.
type Table struct {
	Title string
	Head  []string
	Rows  [][]string
	Note  string
	Links []string   // of the rows' first cells, by the rows' places; an empty one leads nowhere
	Below [][]string // what is said of a row in lines of their own below it, by the rows' places
}

// link is where a row's first cell leads.
func (t Table) link(row, column int) string {
	if column > 0 || row >= len(t.Links) {
		return ""
	}
	return t.Links[row]
}

func (t Table) below(row int) []string {
	if row >= len(t.Below) {
		return nil
	}
	return t.Below[row]
}

//go:embed page.html
var layoutText string

var layout = template.Must(template.New("page").Funcs(template.FuncMap{
	"picture":   func(id int, c Chart) picture { return c.draw(id) },
	"alignment": Table.alignment,
	"link":      Table.link,
	"below":     Table.below,
	"aligned":   aligned,
}).Parse(layoutText))

// Write writes the whole page. The same page gives the same octets. It fails when w does, and only then.
func (p Page) Write(w io.Writer) error {
	var out bytes.Buffer
	if err := layout.Execute(&out, p); err != nil {
		return fmt.Errorf("draw page: %w", err)
	}
	if _, err := w.Write(bytes.ToValidUTF8(out.Bytes(), []byte("�"))); err != nil {
		return fmt.Errorf("write page: %w", err)
	}
	return nil
}

// alignment says of each column whether it holds numbers, so that its head and its dashes stand where they do.
func (t Table) alignment() []bool {
	var numeric, text []bool
	for _, row := range t.Rows {
		for len(numeric) < max(len(row), len(t.Head)) {
			numeric, text = append(numeric, false), append(text, false)
		}
		for column, cell := range row {
			numeric[column] = numeric[column] || looksNumeric(cell)
			text[column] = text[column] || !looksNumeric(cell) && !isBlank(cell)
		}
	}
	for column := range numeric {
		numeric[column] = numeric[column] && !text[column]
	}
	return numeric
}

// aligned says whether a cell stands at the right.
func aligned(columns []bool, column int, cell string) bool {
	inNumbers := column < len(columns) && columns[column]
	return looksNumeric(cell) || inNumbers && isBlank(cell)
}

func isBlank(cell string) bool { return strings.Trim(cell, " –-—") == "" }
