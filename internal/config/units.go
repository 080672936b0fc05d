package config

import (
	"errors"
	"math"
	"regexp"
	"strconv"
	"strings"
	"time"

	"github.com/dustin/go-humanize"

	"vaultd/internal/archive"
)

const day = 24 * time.Hour

var (
	durationShape = regexp.MustCompile(`^(?:([0-9]+)d)?((?:[0-9]+(?:\.[0-9]+)?(?:h|m|s|ms))*)$`)
	sizeShape     = regexp.MustCompile(`^[0-9]+(\.[0-9]+)? ?(B|kB|KB|MB|GB|TB|KiB|MiB|GiB|TiB)$`)
	yearsShape    = regexp.MustCompile(`^[0-9]+y$`)
	bareNumber    = regexp.MustCompile(`^[0-9.]+$`)

	errNoUnit   = errors.New("is a number without a unit")
	errDuration = errors.New("is not a duration")
	errSize     = errors.New("is not a size")
	errYears    = errors.New("is not a number of years")
	errTooLarge = errors.New("is too large")
)

// ParseDuration reads Go's durations of hours and less, with whole days of 24 hours in front: 30s, 1h30m, 7d, 1d12h.
func ParseDuration(s string) (time.Duration, error) {
	m := durationShape.FindStringSubmatch(s)
	switch {
	case bareNumber.MatchString(s):
		return 0, errNoUnit
	case m == nil || s == "":
		return 0, errDuration
	}
	var days, rest time.Duration
	if m[1] != "" {
		n, err := strconv.ParseInt(m[1], 10, 64)
		if err != nil || n > int64(math.MaxInt64/day) {
			return 0, errTooLarge
		}
		days = time.Duration(n) * day
	}
	if m[2] != "" {
		var err error
		if rest, err = time.ParseDuration(m[2]); err != nil {
			return 0, errTooLarge
		}
	}
	if rest > math.MaxInt64-days {
		return 0, errTooLarge
	}
	return days + rest, nil
}

// parseSize reads a size in bytes: 1MB is 1,000,000 of them, 1MiB is 1,048,576.
func parseSize(s string) (int64, error) {
	switch {
	case bareNumber.MatchString(s):
		return 0, errNoUnit
	case !sizeShape.MatchString(s):
		return 0, errSize
	}
	n, err := humanize.ParseBytes(strings.TrimSpace(s))
	if err != nil || n > math.MaxInt64 {
		return 0, errTooLarge
	}
	return int64(n), nil
}

// parseYears reads a number of years, such as 10y; an empty text is none.
func parseYears(s string) (archive.Retention, error) {
	switch {
	case s == "":
		return 0, nil
	case bareNumber.MatchString(s):
		return 0, errNoUnit
	case !yearsShape.MatchString(s):
		return 0, errYears
	}
	n, err := strconv.Atoi(strings.TrimSuffix(s, "y"))
	switch {
	case err != nil || n > archive.MaxRetention:
		return 0, errTooLarge
	case n == 0:
		return 0, errYears
	}
	return archive.Retention(n), nil
}
