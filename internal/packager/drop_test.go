package packager

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"testing"

	"vaultd/internal/archive"
	"vaultd/internal/durable"
	"vaultd/internal/test/kit"
)

// sidecar is a good one; rows change it.
const sidecar = `{
  "documentType": "Invoice",
  "documentId": "2026-4711",
  "documentDate": "2026-10-31",
  "senderName": "Müller & Söhne",
  "recipientIds": ["DE123456789"],
  "currencyCode": "EUR",
  "amount": 1234.56
}
`

// tree is a folder's content by path.
type tree map[string]string

// drop makes the folder and opens it as vaultd would.
func drop(t testing.TB, files tree) (dir string, root *os.Root) {
	t.Helper()
	dir = t.TempDir()
	for name, content := range files {
		write(t, filepath.Join(dir, name), content)
	}
	root = kit.Value(os.OpenRoot(dir))(t)
	t.Cleanup(func() { root.Close() })
	return dir, root
}

func write(t testing.TB, path, content string) {
	t.Helper()
	kit.Must(t, os.MkdirAll(filepath.Dir(path), 0o755))
	kit.Must(t, os.WriteFile(path, []byte(content), 0o644))
}

var rules = Rules{Vault: "VAULT-1"}

// buildAt seals root as the ZIP at zipPath.
func buildAt(ctx context.Context, root *os.Root, r Rules, zipPath string) (Sealed, error) {
	return buildIn(ctx, root, r, zipPath, nil)
}

func buildIn(ctx context.Context, root *os.Root, r Rules, zipPath string, hook durable.Hook) (Sealed, error) {
	dir, err := durable.Open(filepath.Dir(zipPath), hook)
	if err != nil {
		return Sealed{}, err
	}
	defer dir.Close()
	s, err := BuildPackage(ctx, root, r, dir, filepath.Base(zipPath))
	if err == nil {
		s.Package.Path = zipPath
	}
	return s, err
}

// build seals root into a fresh spool and checks that a failed Build leaves nothing there.
func build(t *testing.T, root *os.Root, r Rules) (Sealed, error) {
	t.Helper()
	return buildWithHook(t, root, r, nil)
}

func buildWithHook(t *testing.T, root *os.Root, r Rules, hook durable.Hook) (Sealed, error) {
	t.Helper()
	spool := t.TempDir()
	s, err := buildIn(context.Background(), root, r, filepath.Join(spool, "a.zip"), hook)
	left, _ := os.ReadDir(spool)
	switch {
	case err == nil && (len(left) != 1 || left[0].Name() != "a.zip"):
		t.Errorf("spool after success: %v", left)
	case err != nil && len(left) != 0:
		t.Errorf("spool after %v: %v", err, left)
	}
	return s, err
}

// mustBuild seals a good folder.
func mustBuild(t *testing.T, root *os.Root, r Rules) Sealed {
	t.Helper()
	s, err := build(t, root, r)
	if err != nil {
		if refused, ok := errors.AsType[*Refusal](err); ok {
			t.Fatalf("refused.Text() = %v, want not ok", refused.Text())
		}
		t.Fatal(err)
	}
	return s
}

// refusalOf seals a bad folder and returns its text, which must hold all words.
func refusalOf(t *testing.T, root *os.Root, r Rules, words ...string) *Refusal {
	t.Helper()
	_, err := build(t, root, r)
	refused, ok := errors.AsType[*Refusal](err)
	kit.Need(t, ok, "got %v, want a refusal with %q", err, words)
	kit.Holds(t, "the refusal", refused.Text(), words...)
	_, err = ValidateFolder(context.Background(), root, r)
	kit.Check(t, err != nil && err.Error() == refused.Error(), "Validate says %v, Build %v", err, refused)
	for _, f := range refused.Faults {
		kit.Check(t, f.Brief != "" && f.Text != "" && f.Advice != "", "fault without brief, text or advice: %+v", f)
	}
	return refused
}

func digestOf(s string) string { return archive.Sum([]byte(s)).String() }
