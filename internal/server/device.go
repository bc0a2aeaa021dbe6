package server

import (
	"fmt"
	"maps"
	"slices"
)

// A Device is a kind of machine. It chooses the values of a few settings, where the operator does not.
type Device string

// The devices.
const (
	LowMemory      Device = "low_mem"         // one core and half a gigabyte
	DefaultDevice  Device = "default"         // a small server
	HighThroughput Device = "high_throughput" // a machine that does nothing else
)

// devices holds what each device sets; docs/performance.md says what each value is worth.
var devices = map[Device]map[string]string{
	LowMemory: {
		"store.cache":       "16MiB",  // half of what is resident under the usual load is SQLite's pages
		"limit.process":     "192MiB", // keeps a thousand clients at once within a third of a gigabyte
		"limit.connections": "2048",   // idle ones are resident with 60 KB each
	},
	DefaultDevice: {},
	HighThroughput: {
		"limit.garbage":     "1000",  // a twentieth of the work for a fifth more memory
		"limit.connections": "65536", // as far as the limit of open files allows
	},
}

// UnmarshalText refuses a device that there is none of.
func (d *Device) UnmarshalText(text []byte) error {
	if _, known := devices[Device(text)]; !known {
		return fmt.Errorf("%.40q is no device; there are %q", text, slices.Sorted(maps.Keys(devices)))
	}
	*d = Device(text)
	return nil
}

// MarshalText gives the device's name.
func (d Device) MarshalText() ([]byte, error) { return []byte(d), nil }
