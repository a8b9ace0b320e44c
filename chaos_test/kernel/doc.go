// Package kernel puts generators through clock faults on a real Linux kernel, in a virtual
// machine: clocks that are really stepped, slewed and suspended, processes that are really
// killed, disks that really lose writes.
//
// You need these names: [Main] must come first in the program, [Run] runs [Faults] and
// returns a [Report], [Find] finds the kernel, [Fetch] downloads one, and [Subjects] lists
// the generators. The command tickflake-chaos kernel does all of this, also with a program
// of yours; docs/kernel.md of the repository says what each fault does to the clocks, and
// what the bench cannot show.
//
// The machine is QEMU with software emulation, so it needs no rights and no nested
// virtualization. It boots a kernel of Debian with an initramfs whose /init is the running
// program itself: [Main] notices that, and does the work of process 1. The generators run in
// another process of the same program, each with pipes of its own. Package internal/guest
// makes the faults in the machine; package internal/machine pauses, suspends and copies the
// machine, and cuts its power.
package kernel
