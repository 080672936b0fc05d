package notices

import (
	"bytes"
	"fmt"
	"log/slog"
	"strings"
	"testing"

	"vaultd/internal/archive"
	"vaultd/internal/test/kit"
)

// Each unknown pair of codes is logged once, up to a bound that is logged too.
func TestUnfamiliar_I21_EverNewCodesAreBounded(t *testing.T) {
	var log bytes.Buffer
	p := New(Config{Log: slog.New(slog.NewTextHandler(&log, nil))})
	for range 2 {
		for i := range 100 {
			p.tellUnfamiliar(archive.Notification{Response: "New", Action: fmt.Sprintf("Code%d", i)})
		}
	}
	kit.Want(t, "pairs that are logged", strings.Count(log.String(), "something that is not known"), 32)
	kit.Want(t, "lines at the bound", strings.Count(log.String(), "many codes that are not known"), 1)
}
