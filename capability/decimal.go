package capability

import (
	"fmt"
	"strconv"
	"strings"
)

// A decimal is an exact number of at most 17 digits: whole + fraction / 10^17.
type decimal struct {
	negative        bool
	whole, fraction uint64
}

func parseDecimal(s string) (decimal, error) {
	digits, negative := strings.CutPrefix(s, "-")
	whole, fraction, _ := strings.Cut(digits, ".")
	if strings.ContainsAny(s, "eE") || len(whole)+len(fraction) > maxDigits {
		return decimal{}, refuse(CodeParameterMalformed, "the number %s has an exponent or more than %d digits", clip(s), maxDigits)
	}
	d := decimal{whole: number(whole), fraction: number(fraction + strings.Repeat("0", maxDigits-len(fraction)))}
	d.negative = negative && (d.whole != 0 || d.fraction != 0)
	return d, nil
}

// number reads at most 17 digits, which JSON's grammar has proved to be digits.
func number(digits string) (n uint64) {
	for i := range len(digits) {
		n = n*10 + uint64(digits[i]-'0')
	}
	return n
}

func (d decimal) compare(other decimal) int {
	switch {
	case d == other:
		return 0
	case d.negative != other.negative:
		return sign(d.negative)
	case d.whole != other.whole:
		return sign(d.whole < other.whole != d.negative)
	default:
		return sign(d.fraction < other.fraction != d.negative)
	}
}

func sign(less bool) int {
	if less {
		return -1
	}
	return 1
}

// String gives the shortest form without an exponent.
func (d decimal) String() string {
	s := strconv.FormatUint(d.whole, 10)
	if d.fraction != 0 {
		s += "." + strings.TrimRight(fmt.Sprintf("%0*d", maxDigits, d.fraction), "0")
	}
	if d.negative {
		return "-" + s
	}
	return s
}
