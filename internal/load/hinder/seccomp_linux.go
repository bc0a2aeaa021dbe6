//go:build amd64 || arm64

package hinder

import (
	"errors"
	"fmt"
	"runtime"
	"unsafe"

	"golang.org/x/sys/unix"
)

// The structures of linux/seccomp.h; see seccomp_unotify(2).
type (
	syscallData struct {
		Number  int32
		Arch    uint32
		Pointer uint64
		Args    [6]uint64
	}
	notification struct {
		ID    uint64
		PID   uint32
		Flags uint32
		Data  syscallData
	}
	response struct {
		ID    uint64
		Value int64
		Error int32
		Flags uint32
	}
)

func notificationsAvailable() error {
	action := uint32(unix.SECCOMP_RET_USER_NOTIF)
	_, err := seccomp(unix.SECCOMP_GET_ACTION_AVAIL, 0, unsafe.Pointer(&action))
	return err
}

func seccomp(operation, flags uintptr, argument unsafe.Pointer) (int, error) {
	r, _, errno := unix.Syscall(unix.SYS_SECCOMP, operation, flags, uintptr(argument))
	if errno != 0 {
		return 0, errno
	}
	return int(r), nil
}

// interceptSyncs has every sync of this thread, and of whatever it executes, wait for an answer to the listener that it
// gives. The caller has locked the thread. The program and its children can gain no privileges any more (set-user-ID).
func interceptSyncs() (listener int, err error) {
	if err := unix.Prctl(unix.PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0); err != nil {
		return 0, fmt.Errorf("give up new privileges: %w", err)
	}
	code := syncFilter()
	program := unix.SockFprog{Len: uint16(len(code)), Filter: &code[0]}
	flags := uintptr(unix.SECCOMP_FILTER_FLAG_NEW_LISTENER | unix.SECCOMP_FILTER_FLAG_SPEC_ALLOW)
	// A thread that waits for a disk answers to SIGKILL alone. Linux knows that since 5.19; before, other signals
	// make the sync begin again, with its delay.
	listener, err = seccomp(unix.SECCOMP_SET_MODE_FILTER, flags|unix.SECCOMP_FILTER_FLAG_WAIT_KILLABLE_RECV, unsafe.Pointer(&program))
	if errors.Is(err, unix.EINVAL) {
		listener, err = seccomp(unix.SECCOMP_SET_MODE_FILTER, flags, unsafe.Pointer(&program))
	}
	if err != nil {
		return 0, fmt.Errorf("install the filter of syncs: %w", err)
	}
	return listener, nil
}

// syncs are the system calls that wait for a disk whatever their arguments; msync does with MS_SYNC.
var syncs = []uint32{unix.SYS_FSYNC, unix.SYS_FDATASYNC, unix.SYS_SYNC_FILE_RANGE, unix.SYS_SYNCFS, unix.SYS_SYNC}

// syncFilter is a program for the kernel that picks the syncs of this architecture. A call of another one has other
// numbers and passes.
func syncFilter() (code []unix.SockFilter) {
	allow := 6 + len(syncs) // the places of the last two instructions
	notify := allow + 1
	add := func(op uint16, k uint32, yes, no int) {
		here := len(code)
		code = append(code, unix.SockFilter{Code: op, K: k, Jt: uint8(yes - here - 1), Jf: uint8(no - here - 1)})
	}
	load := func(offset uintptr) {
		code = append(code, unix.SockFilter{Code: unix.BPF_LD | unix.BPF_W | unix.BPF_ABS, K: uint32(offset)})
	}
	give := func(action uint32) {
		code = append(code, unix.SockFilter{Code: unix.BPF_RET | unix.BPF_K, K: action})
	}
	const equal, anyBit = unix.BPF_JMP | unix.BPF_JEQ | unix.BPF_K, unix.BPF_JMP | unix.BPF_JSET | unix.BPF_K
	var data syscallData
	load(unsafe.Offsetof(data.Arch))
	add(equal, auditArch(), 2, allow)
	load(unsafe.Offsetof(data.Number))
	for _, number := range syncs {
		add(equal, number, notify, len(code)+1)
	}
	add(equal, unix.SYS_MSYNC, len(code)+1, allow)
	load(unsafe.Offsetof(data.Args) + 2*unsafe.Sizeof(data.Args[0])) // the low half of its flags: both architectures are little-endian
	add(anyBit, unix.MS_SYNC, notify, allow)
	give(unix.SECCOMP_RET_ALLOW)
	give(unix.SECCOMP_RET_USER_NOTIF)
	return code
}

func auditArch() uint32 {
	if runtime.GOARCH == "arm64" {
		return unix.AUDIT_ARCH_AARCH64
	}
	return unix.AUDIT_ARCH_X86_64
}

// nextSync waits for a sync. It fails with ENOENT when the thread is gone already, and with ESRCH when no process is
// left under the filter.
func nextSync(filter int) (id uint64, err error) {
	poll := []unix.PollFd{{Fd: int32(filter), Events: unix.POLLIN}}
	for {
		if _, err := unix.Poll(poll, -1); errors.Is(err, unix.EINTR) {
			continue
		} else if err != nil {
			return 0, err
		}
		if poll[0].Revents&unix.POLLIN == 0 {
			return 0, unix.ESRCH
		}
		var n notification // the kernel wants it empty
		err := control(filter, unix.SECCOMP_IOCTL_NOTIF_RECV, unsafe.Pointer(&n))
		if errors.Is(err, unix.EINTR) {
			continue
		}
		return n.ID, err
	}
}

// goOn lets a thread do its sync. If the thread was killed meanwhile there is nothing to do.
func goOn(filter int, id uint64) {
	r := response{ID: id, Flags: unix.SECCOMP_USER_NOTIF_FLAG_CONTINUE}
	for errors.Is(control(filter, unix.SECCOMP_IOCTL_NOTIF_SEND, unsafe.Pointer(&r)), unix.EINTR) {
		continue
	}
}

func control(file int, request uintptr, argument unsafe.Pointer) error {
	if _, _, errno := unix.Syscall(unix.SYS_IOCTL, uintptr(file), request, uintptr(argument)); errno != 0 {
		return errno
	}
	return nil
}
