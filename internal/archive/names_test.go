package archive

import (
	"strings"
	"testing"

	"vaultd/internal/test/kit"
)

// I18: a name that a program or a system gives is known in each spelling, and a
// name that people give is not taken for one.
func TestNames_I18_AreKnownByTheirForm(t *testing.T) {
	for what, of := range map[string]struct {
		is      func(string) bool
		yes, no string
	}{
		"System": {IsSystemName, "lost+found $RECYCLE.BIN System\\sVolume\\sInformation #recycle @Recycle .@__thumb .Trash-1000 .stfolder .stversions .snapshot @eaDir Thumbs.db ._a.pdf FOUND.000 __MACOSX a.pdf:Zone.Identifier", "Trash snapshot recycle lost Rechnung .vaultd _archived found.txt"},
		"Unfinished": {IsUnfinished, "r.pdf.9f8e7d6c.partial .sftpgo-upload.cm2k3.r.pdf .r.pdf.Xy12Zz .goutputstream-AB12CD a.PART ~$brief.docx .nfs0001 .smbdeleteAA .fuse_hidden01 .in.a.pdf. .a.pdf.~1a2b3c a.pdf.crdownload a.sb-1a2b3c4d-AbCdEf .#a.txt",
			"a.pdf partial.pdf a.tmp.pdf rechnung.pdf.sha256 .r.pdf.icloud metadata.json .metadata.json.swp a~ .invoice.json"},
		"Placeholder": {IsPlaceholder, ".r.pdf.icloud r.pdf.nextcloud r.pdf.owncloud r.gdoc r.pdf.cloudf", "r.pdf icloud.pdf r.icloud nextcloud"},
		"Content":     {IsContentName, "r.pdf metadata.json Rechnung\\s4711.pdf .done #1.pdf a.backup.pdf", "Thumbs.db a.part .a.icloud a.pdf~"},
	} {
		for _, name := range strings.Fields(of.yes) {
			kit.Want(t, what+" "+name, of.is(strings.ReplaceAll(name, "\\s", " ")), true)
		}
		for _, name := range strings.Fields(of.no) {
			kit.Want(t, what+" "+name, of.is(strings.ReplaceAll(name, "\\s", " ")), false)
		}
	}
}

// I18: a companion names the file that it accompanies.
func TestNames_I18_CompanionNamesItsFile(t *testing.T) {
	for name, want := range map[string]string{
		".~lock.a.ods#": "a.ods", "#a.txt#": "a.txt", ".metadata.json.swp": "metadata.json", ".a.SWO": "a", ".a.txt.un~": "a.txt",
		"metadata.json~": "metadata.json", "a.pdf.~12~": "a.pdf", "a.pdf.bak": "a.pdf", "a.lck": "a", "a.pdf:Zone.Identifier": "a.pdf",
		"a.pdf\uf03aZone.Identifier": "a.pdf", "a.pdf:Zone.Identifier:$DATA": "a.pdf", "a.pdf:com.apple.quarantine": "a.pdf",
		"a.pdf": "", "~": "", "a:b.pdf": "", ".swp": "", "#a": "", "bak": "",
	} {
		kit.Want(t, name, CompanionOf(name), want)
	}
}

// I32: rules that ignore everything, or what is vaultd's own, are a mistake.
func TestIgnoreRules_I32_RefuseWhatHidesEverything(t *testing.T) {
	own := []string{".vaultd", "_archived", "_STATUS.txt"}
	for rules, want := range map[string]string{
		"Entwurf*": "", "scanner.log": "", "[0-9][0-9][0-9][0-9]-*": "", "*.tmp|Notizen": "", "_alt*": "",
		"*": "everything", "**": "everything", "?*": "everything", "*[!~]": "everything", "[!.]*": "everything", "Entwurf*|*": "everything",
		"[0-9]*|[a-z]*|[ä]*": "everything", "_*": "_archived", ".*": ".vaultd", "*.txt": "_STATUS.txt", "_ARCHIVED": "_archived",
		"a/b": "slash", "[": "not a pattern",
	} {
		_, text := IgnoreRules(strings.Split(rules, "|")).FindFault(own, false)
		if kit.Holds(t, rules, text, want); want == "" {
			kit.Want(t, rules, text, "")
		}
	}
	_, text := IgnoreRules{"*.pdf"}.FindFault(own, true)
	kit.Holds(t, "*.pdf in a drop of PDFs", text, "everything")
	kit.Want(t, "case and form", IgnoreRules{"ÜBUNG*"}.Match("u\u0308bung 1"), true)
}
