package present

import (
	"fmt"
	"os/user"
	"strconv"
	"strings"
	"time"

	"vaultd/internal/archive"
	"vaultd/internal/ledger"
	"vaultd/internal/sanitize"
)

// FormatCount counts a thing in words: "1 drop", "2 drops".
func FormatCount[N ~int | ~int64 | ~uint64](n N, one, more string) string {
	if n == 1 {
		return "1 " + one
	}
	return fmt.Sprintf("%d %s", n, more)
}

// FormatSize gives bytes in decimal units, as the price list counts them.
func FormatSize(n int64) string {
	const unit = 1000
	if n < 0 {
		return "unknown"
	}
	if n < unit {
		return FormatBytes(n)
	}
	value, units := float64(n), []string{"kB", "MB", "GB", "TB", "PB", "EB"}
	for _, u := range units {
		value /= unit
		if value < 999.5 || u == units[len(units)-1] {
			return strconv.FormatFloat(value, 'f', digitsOf(value), 64) + " " + u
		}
	}
	return ""
}

func digitsOf(value float64) int {
	if value < 99.95 {
		return 1
	}
	return 0
}

// FormatBytes gives bytes to the last one.
func FormatBytes(n int64) string { return FormatCount(n, "byte", "bytes") }

// FormatAge gives a span of time in its largest units: "20 s", "41 min", "5 h 28 min", "3 days".
func FormatAge(d time.Duration) string {
	switch {
	case d < 0:
		return "0 s"
	case d < time.Minute:
		return fmt.Sprintf("%d s", int(d.Seconds()))
	case d < time.Hour:
		return fmt.Sprintf("%d min", int(d.Minutes()))
	case d < 10*time.Hour && d%time.Hour >= time.Minute:
		return fmt.Sprintf("%d h %d min", int(d.Hours()), int(d.Minutes())%60)
	case d < 72*time.Hour:
		return fmt.Sprintf("%d h", int(d.Hours()))
	}
	return fmt.Sprintf("%d days", int(d.Hours()/24))
}

// UserName names who acted, as this machine knows him.
func UserName(uid uint32) string {
	if uid == ledger.VaultdUID {
		return "vaultd itself, by its configuration"
	}
	id := strconv.FormatUint(uint64(uid), 10)
	u, err := user.LookupId(id)
	if err != nil || u.Username == "" {
		return "uid " + id
	}
	return sanitize.Text(u.Username) + " (uid " + id + ")"
}

// TextOrNil gives nil for what is empty.
func TextOrNil(s string) *string {
	if s == "" {
		return nil
	}
	return &s
}

// TimeOrNil gives nil for no time, and others to the millisecond.
func TimeOrNil(t time.Time) *time.Time {
	if t.IsZero() {
		return nil
	}
	t = t.UTC().Truncate(time.Millisecond)
	return &t
}

func keyOrNil(k archive.Key) *string {
	if k.IsZero() {
		return nil
	}
	return TextOrNil(k.String())
}

// FormatDay is a document's date without the midnight that a date without time gets.
func FormatDay(date string) string { return strings.TrimSuffix(date, "T00:00:00Z") }
