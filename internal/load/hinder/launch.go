package hinder

import (
	"errors"
	"flag"
	"fmt"
	"io"
	"os/exec"
	"slices"
	"strconv"
	"strings"
)

// An order is what a launcher is told on its command line.
type order struct {
	syncs   int    // socket that wants the filter of syncs; -1: they are left alone
	cores   []int  // to run on; none: all
	group   string // directory of the control group to enter; empty: none
	program string // to become in the end
	args    []string
}

// through has cmd start through the launcher, once however often it is asked, and gives the launcher an option.
func through(cmd *exec.Cmd, launcher []string, option string) error {
	switch {
	case cmd.Err != nil:
		return cmd.Err
	case cmd.Process != nil:
		return errors.New("the process has started already")
	case len(launcher) < 2:
		return errors.New("a launcher is a program and the words that bring it to Launch")
	}
	if len(cmd.Args) < len(launcher) || !slices.Equal(cmd.Args[:len(launcher)], launcher) {
		path, err := exec.LookPath(launcher[0])
		if err != nil {
			return fmt.Errorf("find the launcher: %w", err)
		}
		cmd.Args = slices.Concat(launcher, []string{"--", cmd.Path}, cmd.Args[min(1, len(cmd.Args)):])
		cmd.Path = path
	}
	cmd.Args = slices.Insert(cmd.Args, len(launcher), option)
	return nil
}

// parse reads what through has written.
func parse(args []string) (order, error) {
	var o order
	flags := flag.NewFlagSet("launch", flag.ContinueOnError)
	flags.SetOutput(io.Discard)
	flags.IntVar(&o.syncs, "syncs", -1, "")
	flags.StringVar(&o.group, "group", "", "")
	flags.Func("cores", "", func(list string) error {
		for text := range strings.SplitSeq(list, ",") {
			core, err := strconv.Atoi(text)
			if err != nil {
				return err
			}
			o.cores = append(o.cores, core)
		}
		return nil
	})
	if err := flags.Parse(args); err != nil {
		return o, err
	}
	if flags.NArg() == 0 {
		return o, errors.New("no program to launch")
	}
	o.program, o.args = flags.Arg(0), flags.Args()
	return o, nil
}
