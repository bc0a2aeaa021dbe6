package conf

import (
	"errors"
	"fmt"
	"log/slog"
	"math"
	"net/url"
	"strconv"
	"strings"
	"time"
)

// A Duration is a time.Duration written with units: "500ms", "10m", "1h30m", and also days, "90d" or "1d12h", a day
// being 24 hours. A bare number is refused, because nobody remembers whether it meant seconds.
type Duration time.Duration

const day = 24 * time.Hour

// UnmarshalText reads the written form. A sign is refused: no setting here runs backwards.
func (d *Duration) UnmarshalText(text []byte) error {
	parsed, ok := parseDuration(string(text))
	if !ok {
		return fmt.Errorf("%s is not a duration; write it with a unit: 500ms, 30s, 10m, 8h, 90d", quote(string(text)))
	}
	*d = Duration(parsed)
	return nil
}

func parseDuration(text string) (time.Duration, bool) {
	var days time.Duration
	clock := text
	if head, tail, found := strings.Cut(text, "d"); found {
		n, err := strconv.ParseUint(head, 10, 16)
		if err != nil {
			return 0, false
		}
		days, clock = time.Duration(n)*day, tail
		if clock == "" {
			return days, true
		}
	}
	const digits = "0123456789"
	signed := strings.TrimLeft(clock, digits) == clock
	bare := strings.Trim(clock, digits) == ""
	if signed || bare {
		return 0, false
	}
	part, err := time.ParseDuration(clock)
	total := days + part
	return total, err == nil && total >= part // a sum that wrapped is smaller
}

// MarshalText gives the form that UnmarshalText reads.
func (d Duration) MarshalText() ([]byte, error) { return []byte(d.String()), nil }

// String gives whole days as days and leaves out zero units: "90d", "1d12h", "10m".
func (d Duration) String() string {
	if d == 0 {
		return "0s"
	}
	days, rest := time.Duration(d)/day, time.Duration(d)%day
	text := ""
	if days > 0 {
		text = strconv.FormatInt(int64(days), 10) + "d"
	}
	if rest == 0 {
		return text
	}
	clock := rest.String()
	if strings.HasSuffix(clock, "m0s") {
		clock = strings.TrimSuffix(clock, "0s")
	}
	if strings.HasSuffix(clock, "h0m") {
		clock = strings.TrimSuffix(clock, "0m")
	}
	return text + clock
}

// A Size is a number of bytes written with a unit: "512B", "64KiB", "64MiB", "2GiB", or decimal "10MB".
type Size int64

// sizeUnits is ordered so that the binary units come first, largest first, for printing.
var sizeUnits = [...]struct {
	name  string
	bytes int64
}{
	{"TiB", 1 << 40},
	{"GiB", 1 << 30},
	{"MiB", 1 << 20},
	{"KiB", 1 << 10},
	{"TB", 1e12},
	{"GB", 1e9},
	{"MB", 1e6},
	{"KB", 1e3},
	{"B", 1},
}

// UnmarshalText reads the written form: a whole number and its unit.
func (s *Size) UnmarshalText(text []byte) error {
	for _, unit := range sizeUnits {
		digits, ok := strings.CutSuffix(string(text), unit.name)
		if !ok {
			continue
		}
		n, err := strconv.ParseUint(strings.TrimSuffix(digits, " "), 10, 63)
		if err != nil || n > uint64(math.MaxInt64/unit.bytes) {
			break
		}
		*s = Size(int64(n) * unit.bytes)
		return nil
	}
	return fmt.Errorf("%s is not a size; write a whole number with a unit: 512B, 64KiB, 64MiB, 2GiB", quote(string(text)))
}

// MarshalText gives the form that UnmarshalText reads.
func (s Size) MarshalText() ([]byte, error) { return []byte(s.String()), nil }

// String gives the size in the largest unit that leaves a whole number.
func (s Size) String() string {
	for _, unit := range sizeUnits {
		if s != 0 && int64(s)%unit.bytes == 0 {
			return strconv.FormatInt(int64(s)/unit.bytes, 10) + unit.name
		}
	}
	return "0B"
}

// masked stands for a secret wherever it is printed.
const masked = "[secret]"

// A Secret is a configured value that never prints: every verb of fmt, slog and JSON shows "[secret]".
type Secret struct{ text string }

// NewSecret makes a secret, for tests and for what was read from a prompt.
func NewSecret(text string) Secret { return Secret{text: text} }

// Reveal gives the value. Call it where the value is used and keep it nowhere else.
func (s Secret) Reveal() string { return s.text }

// IsZero reports whether no secret is set.
func (s Secret) IsZero() bool { return s.text == "" }

// UnmarshalText keeps the text; every text is a secret.
func (s *Secret) UnmarshalText(text []byte) error {
	s.text = string(text)
	return nil
}

// MarshalText shows only whether a secret is set.
func (s Secret) MarshalText() ([]byte, error) { return []byte(s.String()), nil }

// String shows only whether a secret is set.
func (s Secret) String() string {
	if s.IsZero() {
		return ""
	}
	return masked
}

// Format masks the secret under every verb, %#v and %x included.
func (s Secret) Format(f fmt.State, _ rune) { _, _ = f.Write([]byte(s.String())) }

// LogValue masks the secret in structured logs.
func (s Secret) LogValue() slog.Value { return slog.StringValue(s.String()) }

// A URL is an address that may carry a password, as of a database; the password is masked when it is printed.
type URL string

// UnmarshalText takes any text that parses as a URL. The error does not repeat it, for it may hold the password.
func (u *URL) UnmarshalText(text []byte) error {
	if _, err := url.Parse(string(text)); err != nil {
		return errors.New("not a URL; escape special characters of the password, as in %40 for @")
	}
	*u = URL(text)
	return nil
}

// MarshalText gives the address with its password masked.
func (u URL) MarshalText() ([]byte, error) { return []byte(u.String()), nil }

// Reveal gives the address with its password.
func (u URL) Reveal() string { return string(u) }

// String gives the address with its password masked.
func (u URL) String() string {
	parsed, err := url.Parse(string(u))
	if err != nil {
		return masked
	}
	if query := parsed.Query(); query.Has("password") { // PostgreSQL takes it there too
		query.Set("password", "xxxxx")
		parsed.RawQuery = query.Encode()
	}
	return parsed.Redacted()
}

// Format masks the password under every verb.
func (u URL) Format(f fmt.State, _ rune) { _, _ = f.Write([]byte(u.String())) }

// LogValue masks the password in structured logs.
func (u URL) LogValue() slog.Value { return slog.StringValue(u.String()) }
