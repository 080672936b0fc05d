package archive

import (
	"encoding/json"
	"fmt"
	"log/slog"
	"strings"
	"testing"

	"vaultd/internal/test/kit"
)

// I19: a number of the service never walks out of a path.
func TestParseExtractID_I19_IsOnePartOfAPath(t *testing.T) {
	for text, want := range map[string]bool{
		"4711": true, "a3C-9_f.1": true, strings.Repeat("9", 200): true,
		"": false, ".": false, "..": false, "a/b": false, `a\b`: false, "a b": false, "a?b": false, "a#b": false, "%2e": false, "ä": false, "a\n": false, strings.Repeat("9", 201): false,
	} {
		id, err := ParseExtractID(text)
		kit.Check(t, (err == nil) == want && (!want || string(id) == text), "%q gives %q, %v", text, id, err)
	}
}

// I7: the address of a download grants access, so nothing prints it.
func TestDownloadURL_I7_PrintsNoAddress(t *testing.T) {
	file := ExtractFile{Name: "a.zip", URL: "https://files.example/a?Signature=s3cret"}
	asJSON := kit.Value(json.Marshal(file))(t)
	var logged strings.Builder
	slog.New(slog.NewTextHandler(&logged, nil)).Info("x", "file", file, "url", file.URL)
	for _, text := range []string{fmt.Sprint(file), fmt.Sprintf("%+v %#v %x %q %d", file, file.URL, file.URL, file.URL, file.URL), string(asJSON), logged.String()} {
		kit.Holds(t, "the text", text, "[address]")
		kit.Lacks(t, "the text", text, "s3cret", "files.example")
	}
}
