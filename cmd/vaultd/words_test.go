package main_test

import (
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"vaultd/internal/test/kit"
)

// uncounted is a number in front of a plural that nobody has counted: one of them would be "1 bytes".
var uncounted = regexp.MustCompile(`%d (?:bytes|lines|entries|folders|documents|files|registrations|times)\b`)

// What a person reads says "1 byte" and "2 bytes": counted things go through FormatCount.
func TestWords_OneIsNoPlural(t *testing.T) {
	limits := []string{"the path is longer than %d bytes", "at most %d files", "has %d files; one invoice", "is %d bytes; the service takes", "archived %d times"} // never one
	for _, dir := range []string{".", "../../internal/daemon", "../../internal/dropwork", "../../internal/operator", "../../internal/statusfile", "../../internal/packager", "../../internal/report", "../../internal/present", "../../internal/recovery"} {
		names, err := filepath.Glob(filepath.Join(dir, "*.go"))
		kit.Need(t, err == nil && len(names) != 0,
			"err = %v, dir = %v, want no error, len(names) other than 0", err, dir)
		for _, name := range names {
			for line := range strings.Lines(readPage(t, name)) {
				told := uncounted.MatchString(line) && !strings.Contains(line, "fmt.Errorf") && !strings.HasSuffix(name, "_test.go")
				if told && !slices.ContainsFunc(limits, func(l string) bool { return strings.Contains(line, l) }) {
					t.Errorf("%s: a plural for any number: %s", name, strings.TrimSpace(line))
				}
			}
		}
	}
}
