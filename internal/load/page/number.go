package page

import (
	"math"
	"strconv"
	"strings"
	"unicode"
)

// number writes a value for people: three or more significant digits, thousands separated, a true minus sign.
func number(v float64) string {
	size := math.Abs(v)
	switch {
	case math.IsNaN(v) || math.IsInf(v, 0):
		return "–"
	case size >= 1e15 || size != 0 && size < 1e-6:
		return strings.Replace(strconv.FormatFloat(v, 'g', 3, 64), "-", "−", 1)
	case size >= 100 || size == 0:
		return decimal(v, 0)
	}
	return trimZeros(decimal(v, 2-int(math.Floor(math.Log10(size)))))
}

// decimal writes v with a fixed number of decimals and separated thousands.
func decimal(v float64, decimals int) string {
	text := strconv.FormatFloat(math.Abs(v), 'f', decimals, 64)
	whole, fraction, _ := strings.Cut(text, ".")
	var b strings.Builder
	if v < 0 && strings.Trim(text, "0.") != "" {
		b.WriteString("−")
	}
	for i, digit := range whole {
		if i > 0 && (len(whole)-i)%3 == 0 {
			b.WriteByte(',')
		}
		b.WriteRune(digit)
	}
	if fraction != "" {
		b.WriteString("." + fraction)
	}
	return b.String()
}

func trimZeros(text string) string {
	if !strings.Contains(text, ".") {
		return text
	}
	return strings.TrimRight(strings.TrimRight(text, "0"), ".")
}

// looksNumeric accepts a number with a sign, separators and a short unit: "1,234", "−0.5 ms", "≥ 99.9%", "4.2 MB/s".
func looksNumeric(cell string) bool {
	rest := strings.TrimLeft(strings.TrimSpace(cell), "+-−±<>≤≥≈~ ")
	end := strings.IndexFunc(rest, func(r rune) bool { return !unicode.IsDigit(r) && !strings.ContainsRune(",._", r) })
	unit := ""
	if end >= 0 {
		rest, unit = rest[:end], strings.TrimSpace(rest[end:])
	}
	if rest == "" || !unicode.IsDigit(rune(rest[0])) || strings.Count(rest, ".") > 1 {
		return false
	}
	return len(unit) <= 6 && strings.IndexFunc(unit, notUnit) < 0
}

func notUnit(r rune) bool { return !unicode.IsLetter(r) && !strings.ContainsRune("%‰/°", r) }

// duration writes seconds the way a clock face is read: "20 s", "1:30", "5 min", "2 h".
func duration(seconds float64) string {
	size := math.Abs(seconds)
	sign := ""
	if seconds < 0 {
		sign = "−"
	}
	switch {
	case size == 0:
		return "0"
	case size < 60 || size != math.Trunc(size):
		return number(seconds) + " s"
	case math.Mod(size, 3600) == 0:
		return sign + decimal(size/3600, 0) + " h"
	case math.Mod(size, 60) == 0:
		return sign + decimal(size/60, 0) + " min"
	}
	return sign + decimal(math.Floor(size/60), 0) + ":" + strconv.Itoa(100 + int(math.Mod(size, 60)))[1:]
}

// percentile writes the share q of x = 1/(1-q): 2 is 50%, 100 is 99%, 1000 is 99.9%.
func percentile(x float64) string {
	decimals := max(0, int(math.Ceil(math.Log10(x)-1e-9))-2)
	return trimZeros(strconv.FormatFloat(100*(1-1/x), 'f', min(decimals, 12), 64)) + "%"
}
