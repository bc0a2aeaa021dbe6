package store

import (
	"slices"
	"strings"

	"chancery/internal/base/fault"
)

func refuseUnsafe(settings []Setting, accepted []string) error {
	var unsafe []string
	for _, s := range settings {
		if !s.Safe && !slices.Contains(accepted, s.Name) {
			unsafe = append(unsafe, s.Name+" = "+s.Value+": "+s.Why)
		}
	}
	if len(unsafe) == 0 {
		return nil
	}
	return fault.New(fault.Invalid, "store_not_durable",
		"The database may lose what it has acknowledged: %s.", strings.Join(unsafe, "; ")).
		WithHint("Change the settings of the database, or accept them by name in the configuration of the store.")
}
