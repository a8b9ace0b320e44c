package main

import "syscall"

// dieWithParent has the kernel kill the program when the thread ends that started it.
func dieWithParent(attr *syscall.SysProcAttr) { attr.Pdeathsig = syscall.SIGKILL }
