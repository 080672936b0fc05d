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
// goes on while the machine is suspended, with the name of this boot.
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
	return func() archive.Instant {
		var ts unix.Timespec
		if err := unix.ClockGettime(unix.CLOCK_BOOTTIME, &ts); err != nil {
			panic(fmt.Sprintf("read the boot clock: %v", err)) // it worked a moment ago
		}
		return archive.Instant{Wall: time.Now(), Boot: time.Duration(ts.Nano()), BootID: boot}
	}, nil
}
