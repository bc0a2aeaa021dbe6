package load

import (
	"os/exec"
	"syscall"
)

// bind has the kernel kill the process when the thread that starts it ends, at the latest with this process: also after
// kill -9 nothing goes on that nobody will end.
func bind(cmd *exec.Cmd) {
	if cmd.SysProcAttr == nil {
		cmd.SysProcAttr = &syscall.SysProcAttr{}
	}
	cmd.SysProcAttr.Pdeathsig = syscall.SIGKILL
}
