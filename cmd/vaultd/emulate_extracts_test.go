package main_test

import (
	"vaultd/internal/test/kit"

	"bytes"
	"errors"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	program "vaultd/cmd/vaultd"
)

// The folder of extracts and the flags reach the stand-in: it lists what is in the folder, to its own user alone, in the words of the readings.
// After a restart each extract is there once.
func TestEmulate_Extracts(t *testing.T) {
	service := filepath.Join(t.TempDir(), "service")
	args := []string{"--dir", service, "--extracts", "../../testdata/extracts", "--extract-user", "books", "--extract-times", "rfc3339", "--extract-list", "wrapped", "--extract-file", "bytes"}
	base, stop := runEmulateCommand(t, args...)
	get := func(user, path string) (int, string) {
		req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, base+path, nil)
		kit.Must(t, err)
		req.SetBasicAuth(user, "demo")
		req.Header.Set("Date", time.Now().UTC().Format(http.TimeFormat))
		return sendForText(t, req)
	}
	if code, text := get("demo", "/v1/dataExtracts"); code != 403 {
		t.Errorf("the main user: %d %s", code, text)
	}
	for range 2 {
		code, text := get("books", "/v1/dataExtracts")
		for _, want := range []string{`{"dataExtracts":[`, `"id":"2026-01-01_2026-10-28"`, `"type":"Initial"`, `"endDate":"2026-10-29T00:00:00Z"`, `"id":"2026-10-29"`, `"type":"Delta"`, `"id":"2026-10-31"`} {
			if code != 200 || !strings.Contains(text, want) {
				t.Errorf("no %s in %d %s", want, code, text)
			}
		}
		if n := strings.Count(text, `"fileCount":1`); n != 3 {
			t.Errorf("%d extracts of one file: %s", n, text)
		}
		stop()
		base, stop = runEmulateCommand(t, args...)
	}
	if code, text := get("books", "/v1/dataExtracts/specification/tableDefinition"); code != 200 || !strings.Contains(text, `"INVOICE_NUM"`) {
		t.Errorf("%d %s, want code = 200, text with `\"INVOICE_NUM\"`", code, text)
	}
	if code, text := get("books", "/v1/dataExtracts/2026-10-29/files/0"); code != 200 || !strings.HasPrefix(text, "PK") {
		t.Errorf(`%d %q, want code = 200, text that begins with "PK"`, code, text)
	}
}

// What is wrong in a folder of extracts ends the command with its reason.
func TestEmulate_ExtractsMistakes(t *testing.T) {
	for name, r := range map[string]struct{ folder, definition, want string }{
		"NoDefinition":  {"2026-10-29", "", "definition.json: no such file"},
		"NotJSON":       {"2026-10-29", "columns", "the table definition is no JSON"},
		"NoDay":         {"october", "[]", `"october" is neither a day such as 2026-10-29`},
		"EndsTooEarly":  {"2026-10-29_2026-10-01", "[]", "is neither a day"},
		"DayIsNotThere": {"2026-02-30", "[]", "is neither a day"},
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			err := os.Mkdir(filepath.Join(dir, r.folder), 0o700)
			if r.definition != "" {
				err = errors.Join(err, os.WriteFile(filepath.Join(dir, "definition.json"), []byte(r.definition), 0o600))
			}
			kit.Must(t, err)
			var said bytes.Buffer
			code := program.Run(t.Context(), []string{"emulate", "--listen", "127.0.0.1:0", "--dir", filepath.Join(t.TempDir(), "service"), "--extracts", dir}, strings.NewReader(""), &said, &said, os.LookupEnv)
			if code != exitUsage || !strings.Contains(said.String(), r.want) {
				t.Errorf("exit %d: %s", code, said.String())
			}
		})
	}
}
