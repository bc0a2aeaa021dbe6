package hinder

import (
	"context"
	"net"
	"os"
	"os/exec"
	"strconv"
	"sync/atomic"
	"time"
)

// A Disk delays the syncs of processes that it starts, and of those that they start: fsync, fdatasync, sync_file_range,
// sync, syncfs, and msync with MS_SYNC. The thread that syncs stays in the kernel meanwhile, as with a slow disk, and
// threads that sync at once wait at once. The sync itself comes after the delay. Writes through O_SYNC and io_uring are
// not delayed. Linux on amd64 and arm64 only.
//
// Every method may be called at any time by any goroutine. One Disk may wrap several processes, at once or in turn.
type Disk struct {
	gate  *gate
	syncs atomic.Int64

	ours   *net.UnixConn // launchers' filters arrive here
	theirs *os.File      // launchers inherit it and send there
}

// Wrap has cmd start through a launcher, the words that bring this program to Launch, so that its syncs are delayed.
// Call it before Start, and add own ExtraFiles before that. Only one Disk can wrap a command; a Small may wrap it too.
func (d *Disk) Wrap(cmd *exec.Cmd, launcher []string) error {
	socket := 3 + len(cmd.ExtraFiles) // where os/exec puts the next one
	if err := through(cmd, launcher, "-syncs="+strconv.Itoa(socket)); err != nil {
		return err
	}
	cmd.ExtraFiles = append(cmd.ExtraFiles, d.theirs)
	return nil
}

// Set gives all syncs another delay, also those that wait already; 0 is none. The clock may add up to 1 ms to a delay.
func (d *Disk) Set(delay time.Duration) { d.gate.set(delay) }

// Stall lets no sync end for so long, or until ctx ends, and returns then. After that syncs take the delay again; what
// came during the stall has waited for as long as it waited.
func (d *Disk) Stall(ctx context.Context, length time.Duration) { d.gate.stall(ctx, length) }

// Syncs counts the syncs that have come so far, also those that no delay was set for.
func (d *Disk) Syncs() int { return int(d.syncs.Load()) }

// Close lets all syncs go that wait, and delays none any more. Processes that still run go on unharmed for as long as
// this one lives. No wrapped process can start afterwards.
func (d *Disk) Close() error {
	d.gate.open()
	d.theirs.Close()
	return d.ours.Close()
}
