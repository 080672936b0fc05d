package archive

import (
	"path"
	"regexp"
	"slices"
	"strings"
	"unicode"

	"golang.org/x/text/unicode/norm"
)

// This file is the only list of names that say something about a file before it
// is opened. Names are compared without case.

// systemNames are made by file systems, file servers, desktops and sync programs
// directly in a folder that they manage. A name in systemJunk is one too.
var systemNames = splitLines(`
lost+found
found.[0-9][0-9][0-9]
$recycle.bin
recycler
recycled
system volume information
$extend
dfsrprivate
config.msi
msocache
.trash
.trash-*
.trashes
.trashcan
.recycle
.recycle.bin
#recycle
@recycle
@recently-snapshot
@tmp
@sharebin
@synoresource
.synologyworkingdirectory
.@upload_cache
.@__qini
#snapshot
.snapshot
.snapshots
~snapshot
.snap
.zfs
.ckpt
.glusterfs
.fseventsd
.spotlight-v100
.documentrevisions-v100
.temporaryitems
.appledb
.appledesktop
.apdisk
.volumeicon.icns
.metadata_never_index*
.com.apple.timemachine.*
network trash folder
temporary items
thevolumesettingsfolder
__macosx
.stfolder*
.stversions
.stignore
.sync
.sync_*.db*
.csync_journal.db*
.owncloudsync.log*
.nextcloudsync.log*
.dropbox
.dropbox.attr
.dropbox.cache
.tmp.drivedownload
.tmp.driveupload
.seafile-data
aquota.user
aquota.group
quota.user
quota.group
.autorelabel
.hidden
*:zone.identifier
`)

// systemJunk is left behind by systems in any folder, also in that of an
// invoice. It is never part of an invoice.
var systemJunk = splitLines("thumbs.db\nehthumbs.db\n.ds_store\ndesktop.ini\n.directory\n.localized\n._*\nicon\r\n" + strings.Join(junkFolders, "\n"))

// junkFolders are the folders among systemJunk. A folder of another name belongs
// to the invoice.
var junkFolders = []string{"@eadir", ".@__thumb", ".appledouble"}

// unfinishedNames are given by programs to files that they still write, or that
// were removed while they were open.
var unfinishedNames = splitLines(`
*.part
*.partial
*.tmp
*.temp
*.filepart
*.crdownload
*.opdownload
*.fdmdownload
*.download
*.downloading
*.crswap
*.upload
*.uploading
*.incomplete
*.unfinished
*.inprogress
*.aria2
*.lftp-pget-status
*.!ut
*.!qb
*.!sync
~$*
.#*
.in.*
.nfs*
.smbdelete*
.fuse_hidden*
.goutputstream-*
.sftpgo-upload.*
.pureftpd-upload.*
.syncthing.*
~syncthing~*
.~tmp~
`)

// unfinishedForms are names of unfinished files with a random part: those of
// rsync, of clients of cloud folders, and of programs that save safely.
var unfinishedForms = regexp.MustCompile(`^\..+\.[A-Za-z0-9]{6}$|^\..+\.~[0-9a-f]+$|\.sb-[0-9a-f]{8}-[A-Za-z0-9]{6}$`)

// placeholderNames are given by cloud folders to what stands in the place of a
// file that was not downloaded.
var placeholderNames = splitLines(`
.*.icloud
*.nextcloud
*.owncloud
*.cloud
*.cloudf
*.gdoc
*.gsheet
*.gslides
*.gdraw
*.gform
*.gjam
*.glink
*.gmap
*.gnote
*.gscript
*.gsite
*.gtable
`)

// companionForms are names of files that accompany another one, whose name is
// the group: locks and swap files of editors, backups, and what a file server
// makes of a stream of Windows or macOS.
var companionForms = []*regexp.Regexp{
	regexp.MustCompile(`(?is)^\.~lock\.(.+)#$`),
	regexp.MustCompile(`(?is)^#(.+)#$`),
	regexp.MustCompile(`(?is)^\.(.+)\.(?:sw[a-p]|swpx|kate-swp|un~)$`),
	regexp.MustCompile(`(?is)^(.+?)(?:\.~[0-9]+)?~$`),
	regexp.MustCompile(`(?is)^(.+)\.(?:bak|lock|lck)$`),
	regexp.MustCompile("(?is)^(.+)[:\uf022\uf03a](?:zone\\.identifier|smartscreen|afp_afpinfo|afp_resource|com\\.apple\\.[a-z.]+)(?:[:\uf022\uf03a]\\$data)?$"),
}

func splitLines(text string) []string { return strings.Split(strings.Trim(text, "\n"), "\n") }

// matchesAny reports whether a name matches one of some globs in lower case.
func matchesAny(globs []string, name string) bool {
	name = strings.ToLower(name)
	return slices.ContainsFunc(globs, func(glob string) bool {
		matched, err := path.Match(glob, name)
		return matched && err == nil
	})
}

// IsSystemName reports a name that a system gives to something directly in a
// drop folder.
func IsSystemName(name string) bool {
	return matchesAny(systemNames, name) || IsSystemJunk(name)
}

// IsSystemJunk reports a name that a system leaves behind in any folder.
func IsSystemJunk(name string) bool { return matchesAny(systemJunk, name) }

// IsJunkFolder reports the system junk that is a folder.
func IsJunkFolder(name string) bool { return matchesAny(junkFolders, name) }

// IsUnfinished reports a name that a program gives to a file that it still
// writes, or to the mark that it has a file open. The folder waits.
func IsUnfinished(name string) bool {
	return (matchesAny(unfinishedNames, name) || unfinishedForms.MatchString(name)) && !IsPlaceholder(name)
}

// IsPlaceholder reports a name that a cloud folder gives to what stands in the
// place of a file that was not downloaded. The folder waits.
func IsPlaceholder(name string) bool { return matchesAny(placeholderNames, name) }

// CompanionOf returns the name of the file that a file of that name accompanies,
// if both are there; empty: the name is not that of a companion.
func CompanionOf(name string) string {
	for _, form := range companionForms {
		if m := form.FindStringSubmatch(name); m != nil {
			return m[1]
		}
	}
	return ""
}

// IsContentName reports whether a file of that name is always a part of its
// invoice.
func IsContentName(name string) bool {
	return !IsSystemJunk(name) && !IsUnfinished(name) && !IsPlaceholder(name) && CompanionOf(name) == ""
}

// FoldName maps names that some file system takes for the same to one text: NFC,
// and for each letter the least of its capital and small forms. ß stays apart
// from ss: no file system mixes them up, and Maße.pdf may be next to Masse.pdf.
func FoldName(name string) string {
	return strings.Map(func(r rune) rune {
		least := r
		for next := unicode.SimpleFold(r); next != r; next = unicode.SimpleFold(next) {
			least = min(least, next)
		}
		return least
	}, norm.NFC.String(name))
}
