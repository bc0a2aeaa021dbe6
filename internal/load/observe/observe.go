// Package observe notes what happens on a machine while something is measured on it: what the machine is, what else
// ran, and what the processes in question took of it.
//
// It reads what the system tells anybody, Linux under /proc and /sys; elsewhere most of it stays empty. Nothing here
// changes the machine.
package observe
