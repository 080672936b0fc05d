package daemon

import (
	"fmt"
	"os"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"vaultd/internal/archive"
)

// Clock returns the clock that deadlines need: wall time, and the boot clock, which
// goes on while the machine is suspended, with the name of this boot and how much of it
// was slept through.
func Clock() (func() archive.Instant, error) {
	id, err := os.ReadFile("/proc/sys/kernel/random/boot_id")
	if err != nil {
		return nil, fmt.Errorf("read the boot's name: %w", err)
	}
	boot := strings.TrimSpace(string(id))
	var probe unix.Timespec
	if err := unix.ClockGettime(unix.CLOCK_BOOTTIME, &probe); err != nil {
		return nil, fmt.Errorf("read the boot clock: %w", err)
	}
	read := func(clock int32) time.Duration {
		var ts unix.Timespec
		if err := unix.ClockGettime(clock, &ts); err != nil {
			panic(fmt.Sprintf("read clock %d: %v", clock, err)) // it worked a moment ago
		}
		return time.Duration(ts.Nano())
	}
	return func() archive.Instant {
		awake := read(unix.CLOCK_MONOTONIC) // stands still while the machine is suspended
		boottime := read(unix.CLOCK_BOOTTIME)
		return archive.Instant{Wall: time.Now(), Boot: boottime, BootID: boot, Slept: boottime - awake}
	}, nil
}
