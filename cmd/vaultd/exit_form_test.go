package main

import (
	"fmt"
	"strings"
	"testing"

	"vaultd/internal/ledger"
)

// A ledger whose form is not known ends every command with 78 and the next step to take.
func TestExit_I28_AFormThatIsNotKnown(t *testing.T) {
	for err, hint := range map[error]string{
		ledger.ErrNewerSchema: "install the newer vaultd",
		ledger.ErrDevelopment: "vaultd rebuild",
	} {
		code, got := exitCodeOf(fmt.Errorf("open ledger: %w", err))
		if code != exitConfig || !strings.Contains(got, hint) {
			t.Errorf("%v: exit code %d, hint %q", err, code, got)
		}
	}
}
