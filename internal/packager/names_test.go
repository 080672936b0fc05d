package packager

import (
	"strings"
	"testing"

	"vaultd/internal/test/kit"
)

// I18: a lock, a swap file or a backup is left out, and listed, where the file
// that it accompanies is there and no list names it. Otherwise it is a file as
// any other.
func TestFolder_I18_CompanionsAreLeftOut(t *testing.T) {
	const meta = `{"documentType": "Invoice", "documentId": "1", "documentDate": "2026-10-31"`
	backup := "a.pdf~"
	for name, row := range map[string]struct {
		files      tree
		sent, junk string
		complete   string
	}{
		"BesideTheirFile": {tree{"metadata.json": meta + "}", "a.pdf": "a", "sub/b.ods": "b", backup: "x", ".~lock.a.pdf#": "x", "sub/.b.ods.swp": "x", "metadata.json.bak": "x", "a.pdf:Zone.Identifier": "x"},
			"a.pdf sub/b.ods", ".~lock.a.pdf# a.pdf:Zone.Identifier a.pdf~ metadata.json.bak sub/.b.ods.swp", ""},
		"Alone":             {tree{"metadata.json": meta + "}", "a.pdf": "a", "b.pdf~": "x", "sub/a.pdf~": "x", ".~lock.c.ods#": "x"}, ".~lock.c.ods# a.pdf b.pdf~ sub/a.pdf~", "", ""},
		"NamedBySidecar":    {tree{"metadata.json": meta + `, "files": ["a.pdf", "a.pdf~"]}`, "a.pdf": "a", backup: "x", "a.pdf.bak": "y"}, "a.pdf a.pdf~", "a.pdf.bak", "list"},
		"NamedByManifest":   {tree{"metadata.json": meta + "}", "manifest-sha256.txt": digestOf("a") + "  a.pdf\n" + digestOf("x") + "  a.pdf~\n", "a.pdf": "a", backup: "x"}, "a.pdf a.pdf~", "", "list"},
		"FolderIsNoBackup":  {tree{"metadata.json": meta + "}", "a.pdf": "a", "a.pdf~/b.pdf": "x"}, "a.pdf a.pdf~/b.pdf", "", ""},
		"ThumbnailsOfANAS":  {tree{"metadata.json": meta + "}", "a.pdf": "a", ".@__thumb/s100a.pdf": "x", ".AppleDouble/a.pdf": "x"}, "a.pdf", ".@__thumb/s100a.pdf .AppleDouble/a.pdf", ""},
		"OneWithoutContent": {tree{"metadata.json": meta + "}", "a.pdf": "a", "a.pdf.lock": ""}, "a.pdf", "a.pdf.lock", ""},
	} {
		t.Run(name, func(t *testing.T) {
			_, root := drop(t, row.files)
			r := rules
			r.Complete = row.complete
			s := kit.Value(ValidateFolder(t.Context(), root, r))(t)
			var sent []string
			for _, f := range s.Files {
				sent = append(sent, f.Path)
			}
			kit.Want(t, "sent", strings.Join(sent, " "), row.sent)
			kit.Want(t, "ignored", strings.Join(s.Junk, " "), row.junk)
		})
	}
	for _, waits := range []string{".a.pdf.icloud", ".a.pdf.Xy12Zz", "a.pdf.partial", "sub/a.gdoc"} {
		_, root := drop(t, tree{"metadata.json": meta + "}", "a.pdf": "a", waits: "x"})
		kit.Fails(t, waits+": err", kit.Err(ValidateFolder(t.Context(), root, rules)), ErrChanged)
	}
}
