package emulator

import (
	"errors"
	"fmt"
	"slices"
	"time"
)

// Readings choose between the plausible meanings of what the specification leaves open. The zero value is the most
// likely reading everywhere; a word that is not listed is an error of New and SetReadings.
type Readings struct {
	URLForm          string        // archiveFileURL: object | string | headers | fields (the last two must be sent with the PUT)
	InOrder          bool          // registrations answered in the order they were sent, not shuffled
	Repeat           string        // a clientUUID seen before: new | refuse (400) | same (its bumId, with a fresh URL)
	LatePackage      string        // a package that lands after the window: archive | ignore
	BadCredentials   int           // wrong credentials, or a token that is not valid any more: 403 | 401
	TokenType        string        // the type of each token, as it is told; default Bearer; none: it is left out
	TokenErrorsAs200 bool          // errors of the token endpoint come with 200
	UnknownBumID     int           // a question about a bumId that the vault does not have: 404 | 400 | 422 | 502
	BumIDCase        string        // how answers spell bumIds: small | capital | mixed (in capitals wherever one is told again); a question may spell them as it likes
	BasicEncoding    string        // of user and password in the Basic header: raw | rfc6749
	ErrorBody        string        // message | Message | detail | detail-list | error | oauth | service | network | wrapped | xml | empty | html
	NumbersAsStrings bool          // numbers come as strings, and the index's amounts, usually strings, as numbers
	TwinFields       bool          // each field of an answer is followed by one whose name differs in its case only, and that says something else
	InProgressWord   string        // reported instead of ArchivingInProgress; %d in it is the time of the question in seconds, so that each answer has another word
	ETag             string        // of a stored object: md5 | kms (32 hex digits that are no MD5) | none
	Download         string        // bytes | redirect | json (with a pre-signed URL)
	VaultList        string        // objects | ids | wrapped
	IndexFound       string        // what an index page counts as found: all | none (the field is missing) | page (this page's) | read (up to this page's end) | left (from this page on) | zero | negative | more (1,000 too many)
	IndexFields      string        // a record of the index has the fields that were: sent | filled (currencyCode, tradingPartner and flowDirection come in any case)
	IndexPage        int           // an index page has at most so many documents, whatever size asks for; 0: as asked
	RedirectTo       string        // every API call is first sent on by 307: "same" host, or the base address of another
	ContentMD5       string        // of an upload: check (other bytes are refused) | ignore | unsigned, mismatch, unknown (refused with 403 or 501 where its address does not sign it)
	Expect           string        // of an upload that waits for "100 Continue": continue | refuse (417)
	PackageType      string        // the Content-Type that an upload must have (403 else), where its address does not sign one: any | application/octet-stream | application/zip
	ShortBody        string        // an upload whose body ends early: refuse | keep (as if it were whole, where Content-MD5 is not checked)
	KeyInQuery       bool          // all upload addresses have one path, and a parameter names the object
	StatusList       string        // the status list covers the last 500 documents that were: registered | uploaded (those without content are left out, and the last one uploaded comes first)
	ListAge          time.Duration // the status list tells how things stood so long ago
	Retention        time.Duration // so long after its success a document has left the archive: it is in no list, and its bumId is unknown; 0: never
	PDF              PDFReadings
	Extracts         ExtractReadings
	Network          NetworkReadings
	RedirectStatus   int    // of RedirectTo: 307 | 301 | 302 | 308; by each the call is to be repeated as it is
	StoreRedirectTo  string // every PUT is first sent on by 307, freshly signed, to this base address without a path
}

func (r *Readings) check() error {
	setDefault(&r.BadCredentials, 403)
	if r.BadCredentials != 401 && r.BadCredentials != 403 {
		return fmt.Errorf("reading BadCredentials: %d is neither 401 nor 403", r.BadCredentials)
	}
	if r.IndexPage < 0 {
		return fmt.Errorf("reading IndexPage: %d is less than nothing", r.IndexPage)
	}
	if r.ListAge < 0 {
		return fmt.Errorf("reading ListAge: %s is less than nothing", r.ListAge)
	}
	if r.Retention < 0 {
		return fmt.Errorf("reading Retention: %s is less than nothing", r.Retention)
	}
	setDefault(&r.RedirectStatus, 307)
	if !slices.Contains([]int{301, 302, 307, 308}, r.RedirectStatus) {
		return fmt.Errorf("reading RedirectStatus: %d is none of 301, 302, 307 and 308", r.RedirectStatus)
	}
	setDefault(&r.UnknownBumID, 404)
	if !slices.Contains([]int{400, 404, 422, 502}, r.UnknownBumID) {
		return fmt.Errorf("reading UnknownBumID: %d is none of 400, 404, 422 and 502", r.UnknownBumID)
	}
	return errors.Join(
		r.PDF.check(),
		r.Extracts.check(),
		r.Network.check(),
		checkWord("IndexFound", &r.IndexFound, "all", "none", "page", "read", "left", "zero", "negative", "more"),
		checkWord("IndexFields", &r.IndexFields, "sent", "filled"),
		checkWord("URLForm", &r.URLForm, "object", "string", "headers", "fields"),
		checkWord("Repeat", &r.Repeat, "new", "refuse", "same"),
		checkWord("BumIDCase", &r.BumIDCase, "small", "capital", "mixed"),
		checkWord("LatePackage", &r.LatePackage, "archive", "ignore"),
		checkWord("BasicEncoding", &r.BasicEncoding, "raw", "rfc6749"),
		checkWord("ErrorBody", &r.ErrorBody, errorForms...),
		checkWord("ETag", &r.ETag, "md5", "kms", "none"),
		checkWord("ContentMD5", &r.ContentMD5, "check", "ignore", "unsigned", "mismatch", "unknown"),
		checkWord("Expect", &r.Expect, "continue", "refuse"),
		checkWord("PackageType", &r.PackageType, "any", "application/octet-stream", "application/zip"),
		checkWord("ShortBody", &r.ShortBody, "refuse", "keep"),
		checkWord("StatusList", &r.StatusList, "registered", "uploaded"),
		checkWord("Download", &r.Download, "bytes", "redirect", "json"),
		checkWord("VaultList", &r.VaultList, "objects", "ids", "wrapped"),
	)
}

// checkWord sets an empty word to the first of the allowed ones and refuses any other.
func checkWord(name string, word *string, allowed ...string) error {
	if *word == "" {
		*word = allowed[0]
	}
	if !slices.Contains(allowed, *word) {
		return fmt.Errorf("reading %s: %q is none of %q", name, *word, allowed)
	}
	return nil
}
