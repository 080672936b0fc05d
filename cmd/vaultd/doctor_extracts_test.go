package main_test

import (
	"vaultd/internal/test/kit"

	"os"
	"path/filepath"
	"strings"
	"testing"

	"vaultd/internal/emulator"
)

// The extracts and their folder are tried for real, and each fault says what to do.
func TestDoctor_Extracts(t *testing.T) {
	t.Parallel()
	forbidden := emulator.Config{Faults: emulator.Faults{Rules: []emulator.Rule{{Op: "extract-list", Rate: 1, Fault: emulator.Fault{Kind: emulator.Status, Status: 403}}}}}
	for name, row := range map[string]struct {
		cfg        emulator.Config
		folder     func(path string) error
		code       int
		what, want string
	}{
		"Good":      {emulator.Config{}, mkdirPrivate, exitDone, "extracts", "extracts listed: 0"},
		"Folder":    {emulator.Config{}, mkdirPrivate, exitDone, "custody", "OK "},
		"NoRight":   {forbidden, mkdirPrivate, exitFailed, "extracts", "an API user of their own"},
		"NoFolder":  {emulator.Config{}, func(string) error { return nil }, exitFailed, "custody", "no such file"},
		"NotFolder": {emulator.Config{}, func(path string) error { return os.WriteFile(path, nil, 0o600) }, exitFailed, "custody", "is no folder"},
	} {
		t.Run(name, func(t *testing.T) {
			_, address := serveEmulator(t, row.cfg)
			s := newSite(t, address, fast)
			custody := filepath.Join(s.dir, "custody")
			kit.Must(t, row.folder(custody))
			s.edit("drops:", "extracts: {base_url: "+address+", custody: "+custody+", auth: {method: basic, username: demo, secret_file: "+s.dir+"/secret}}\ndrops:")
			d := s.diagnose(row.code)
			found := false
			for _, tr := range d.Tries {
				if tr.What == row.what {
					found = found || strings.Contains(tr.Result+" "+tr.Text+" "+tr.Do, row.want)
				}
				if tr.Result == tryFail && tr.Do == "" {
					t.Errorf("it does not say what to do: %+v", tr)
				}
			}
			if !found {
				t.Errorf("%+v, want found", d.Tries)
			}
		})
	}
}

func mkdirPrivate(path string) error { return os.Mkdir(path, 0o700) }
