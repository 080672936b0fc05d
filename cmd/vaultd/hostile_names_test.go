package main_test

import (
	"fmt"
	"os"
	"strings"
	"syscall"
)

// file adds one of this name to an invoice.
func file(names ...string) func(y *yard, at string) {
	return spoilt(func(y *yard, at string) {
		for i, name := range names {
			y.must(os.WriteFile(at+"/"+name, fmt.Append(nil, "x", i), 0o660))
			y.give(at + "/" + name)
		}
	})
}

func plain(y *yard, at string) { y.invoice(at) }

func hostileNames() []hostile {
	const rename = "Rename it"
	rows := []hostile{
		{name: "FileNewline", make: file("a\nb.pdf"), want: returns, says: []string{"line break", rename}},
		{name: "FileEscape", make: file("a\x1b[2J.pdf"), want: returns, says: []string{"control character", rename}},
		{name: "FileRTL", make: file("rechnung\u202efdp.exe"), want: returns, says: []string{"turns the reading direction", rename}},
		{name: "FileInvalid", make: file("a\xff\xfe.pdf"), want: returns, says: []string{"UTF-8", rename}},
		{name: "FileBackslash", make: file(`..\..\x.pdf`), want: returns, says: []string{"backslash", rename}},
		{name: "FileCaseTwins", make: file("Anlage.pdf", "ANLAGE.PDF"), want: returns, says: []string{"same name as"}},
		{name: "FileUnicodeTwins", make: file("M\u00fcller.pdf", "Mu\u0308ller.pdf"), want: returns, says: []string{"the way accents are stored"}},
		{name: "FileDotTwins", make: file("anlage.pdf", "anlage.pdf."), want: returns, says: []string{"same name as"}},
		{name: "FileSpaceTwins", make: file("anlage.pdf", "anlage.pdf "), want: returns, says: []string{"same name as"}},
		{name: "FileNFD", make: file("Mu\u0308ller.pdf"), want: archives, says: []string{"M\u00fcller.pdf"}},
		{name: "FileDashes", make: file("-rf", "--", "...", "..x", "=cmd|'calc'!A0", `"quoted".pdf`, "'", "%s%n", "$(reboot)", "`reboot`", "<script>alert(1)<script"), want: archives},
		{name: "FileCON", make: file("CON", "aux.pdf", "LPT1.txt", "COM¹"), want: archives},
		{name: "FileLongest", make: file(strings.Repeat("x", 251)+".pdf", strings.Repeat("ü", 127)), want: archives},
		{name: "FileSpace", make: file(" ", "a ", " a", "a."), want: returns, says: []string{"same name as"}},
		{name: "FileLikeOurs", make: file("_STATUS.txt", ".lock", "drop.json"), want: archives},
		{name: "SubfolderTwins", make: spoilt(func(y *yard, at string) { y.write(at+"/A/x.pdf", "1"); y.write(at+"/a/y.pdf", "2") }), want: returns, says: []string{"same name as"}},
		{name: "SubfolderVaultd", make: spoilt(func(y *yard, at string) {
			y.write(at+"/.vaultd/claimed/x.pdf", "1")
			y.write(at+"/_rejected/x.pdf", "2")
		}), want: archives},
		{name: "FolderReason", make: spoilt(func(y *yard, at string) { y.write(at+"/_REASON.txt/x", "1") }), want: archives, says: []string{"_REASON.txt/x"}},
		{name: "FolderThumbs", make: spoilt(func(y *yard, at string) { y.write(at+"/Thumbs.db/x.pdf", "1") }), want: archives, says: []string{"Thumbs.db/x.pdf"}},
		{name: "FolderReceipt", make: spoilt(func(y *yard, at string) { y.write(at+"/_RECEIPT.json/x", "1") }), want: returns, says: []string{"_RECEIPT.json is a folder", rename}},
		{name: "ReservedArchived", folder: "_ARCHIVED", make: plain, want: waits, says: []string{"uses this name itself", "rename the folder"}},
		{name: "ReservedRejected", folder: "_Rejected", make: plain, want: waits, says: []string{"uses this name itself", "rename the folder"}},
		{name: "ReservedVaultd", folder: ".VAULTD", make: plain, want: waits, says: []string{"uses this name itself", "rename the folder"}},
		{name: "ReservedTemplate", folder: "_TEMPLATE", make: plain, want: waits, says: []string{"uses this name itself", "rename the folder"}},
		{name: "JunkFolder", folder: "._Huber 88", make: plain, want: archives},
		{name: "JunkFolder2", folder: "desktop.ini", make: plain, want: archives},
		{name: "SynologyFolder", folder: "@eaDir", make: func(y *yard, at string) { y.folder(at) }, want: ignored},
		{name: "TemporaryFolder", folder: "Export.part", make: plain, want: waits, says: []string{"Export.part"}},
		{name: "LooseFile", make: func(y *yard, at string) { y.write(at, "x") }, want: waits, says: []string{"loose file", "put it in a folder"}},
		{name: "LooseLink", make: func(y *yard, at string) { y.must(os.Symlink(y.outside+"/folder", at)) }, want: waits, says: []string{"a link: copy the folder itself here, delete the link"}},
		{name: "LooseFIFO", make: func(y *yard, at string) { y.must(syscall.Mkfifo(at, 0o660)) }, want: waits, says: []string{"loose file"}},
	}
	for _, folder := range []string{"a\nb\rc", "\x1b[2J\x1b]0;pwned\a", "Huber\u202e88", "\xff\xfe\xfd", "...", "..Huber", `C:\Windows\x`, "CON", "Huber.", "Huber ", " Huber", "HUBER 88", "Huber 88",
		"M\u00fcller 4711", "Mu\u0308ller 4711", "-rf", "--config", "=cmd|'calc'!A0", "@SUM(1)", "+1", "\"', <b>", "<script>alert(1)<script", "<img src=x onerror=alert(1)>", "{{.Key}}", "%s%n%!", "$(reboot)",
		strings.Repeat("L", 255), strings.Repeat("ü", 127), "\u200bzero", "\u2028line", "\u009b2J\u009d0;x\u009c", "a\tb", "💶 1", "İstanbul", "ﬀ", "claimed", "lock", "drop.json", ".done", "~Huber", "metadata.json"} {
		rows = append(rows, hostile{name: fmt.Sprintf("Named %.30q", folder), folder: folder, make: plain, want: archives})
	}
	return rows
}
