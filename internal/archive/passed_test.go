package archive

import (
	"fmt"
	"testing"
	"time"

	"vaultd/internal/test/kit"
)

// I2: the lesser of two clocks counts, and one that was set back does not.
func TestPassed_I2(t *testing.T) {
	const day = 24 * time.Hour
	for _, row := range []struct{ ours, theirs, want time.Duration }{
		{day, day, day}, {day, time.Hour, time.Hour}, {time.Hour, day, time.Hour}, {-day, time.Hour, time.Hour}, {time.Hour, -day, time.Hour},
		{-time.Minute, day, -time.Minute}, {day, -5 * time.Minute, -5 * time.Minute}, {day, -5*time.Minute - 1, day},
	} {
		kit.Want(t, fmt.Sprintf("%v and %v", row.ours, row.theirs), ReliableElapsed(row.ours, row.theirs), row.want)
	}
	if got := ReliableElapsed(-day, -2*day); got >= 0 {
		t.Errorf("both were set back: %v", got)
	}
}
