package cli

import (
	"context"
	"path/filepath"
	"strings"
	"time"

	"chancery/internal/load/observe"
)

// power looks whether the processor is kept slow. Most virtual machines do not tell, and there is nothing to say then.
func (d *examination) power(governor string) {
	switch {
	case governor == "":
	case observe.PowerSaving(governor):
		d.say(warning, "processor", "`cpupower frequency-set -g performance`, or the power profile of the system",
			"its governor is %s: signatures take longer than they need to", governor)
	default:
		d.say(ok, "processor", "", "its governor is %s", governor)
	}
}

const (
	syncSlow   = 5 * time.Millisecond
	syncTimes  = 50
	syncWithin = 500 * time.Millisecond
)

// sync measures the disk that certificates wait for. That of a database server is not ours to measure.
func (d *examination) sync(ctx context.Context) {
	dir, ours := d.databaseDir()
	if !ours {
		return
	}
	median, _, err := observe.SyncLatency(ctx, dir, syncTimes, syncWithin)
	if err != nil {
		d.say(warning, "sync", "run the doctor as the user that runs the server", "how fast the disk is could not be measured: %v", err)
		return
	}
	d.synced(median)
}

// databaseDir gives the directory of a SQLite database; ours is false where the database is a server.
func (d *examination) databaseDir() (dir string, ours bool) {
	scheme, file, named := strings.Cut(d.config.Store.URL.Reveal(), ":")
	if !named {
		return d.data, true
	}
	return filepath.Dir(strings.TrimPrefix(file, "//")), scheme == "sqlite"
}

// synced judges the time that one sync takes.
func (d *examination) synced(median time.Duration) {
	text := "the disk takes " + median.Round(10*time.Microsecond).String() + " to make 4 KiB last"
	if median <= syncSlow {
		d.say(ok, "sync", "", "%s", text)
		return
	}
	d.say(warning, "sync", "put the data directory on a local SSD, best one that keeps its cache through a loss of power",
		"%s: each certificate waits for one such sync, those that come together share it", text)
}
