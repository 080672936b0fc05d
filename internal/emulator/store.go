package emulator

import (
	"archive/zip"
	"bytes"
	"cmp"
	"crypto/md5"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"
)

// storeObject handles a PUT to a pre-signed URL as an object store does. It takes none of the API's credentials, wants a known
// length, and stores the whole body or nothing. Readings can make it less strict.
func (s *Server) storeObject(c *call) reply {
	if d := s.checkPut(c); d != nil {
		return c.storeRefusal(d)
	}
	signedAt, d := s.keys.verify(c.Request, c.now)
	if d != nil {
		return c.storeRefusal(d)
	}
	g, d := s.findTarget(c, signedAt)
	if d == nil {
		d = s.checkHeaders(c)
	}
	if d == nil {
		d = c.checkPackageType()
	}
	if d != nil {
		return c.storeRefusal(d)
	}
	s.checkQuery(c, signedAt)
	if to := c.redirectTarget(); to != "" {
		return s.redirectPut(c, to+c.URL.EscapedPath()+keyQuery(c.Request))
	}
	if c.fault.Kind == RedirectAway {
		if to, err := s.addressOfAnother(c, g); err != nil || to != "" {
			return s.redirectPut(c, to)
		}
	}
	p, sum, d := s.receiveBody(c)
	if d == nil && c.fault.Kind != Vanish {
		d = s.storePackage(c, g, p)
	}
	if d != nil {
		return c.storeRefusal(d)
	}
	return s.storedReply(c, sum)
}

// checkPut refuses what is no PUT, and one that carries credentials.
func (s *Server) checkPut(c *call) *denial {
	if c.Header.Get("Authorization") != "" {
		s.recordViolation(c, "Authorization header on a pre-signed PUT")
		return &denial{400, "InvalidArgument", "Only one auth mechanism allowed"}
	}
	if c.Method != http.MethodPut {
		return &denial{405, "MethodNotAllowed", "The specified method is not allowed against this resource."}
	}
	return nil
}

// redirectTarget returns the host to which the readings send a PUT on; empty: it has arrived.
func (c *call) redirectTarget() string {
	if to := strings.TrimSuffix(c.reading.StoreRedirectTo, "/"); to != baseURL(c.Request) {
		return to
	}
	return ""
}

// findTarget finds the registration that the URL belongs to.
func (s *Server) findTarget(c *call, signedAt time.Time) (*registration, *denial) {
	bumID, _ := strings.CutSuffix(objectName(c.URL), ".zip")
	s.mu.Lock()
	defer s.mu.Unlock()
	g := s.state.byBumID[bumID]
	if s.state.ambiguousBumIDs[bumID] {
		s.recordViolationLocked(c, "PUT to bumId %s, which no answer gave to one clientUUID alone", bumID)
	}
	if g == nil {
		return nil, &denial{404, "NoSuchKey", "The specified key does not exist."}
	}
	if slices.ContainsFunc(g.sharedAt, func(at time.Time) bool { return at.Truncate(time.Second).Equal(signedAt) }) && !g.lastSigned().Truncate(time.Second).Equal(signedAt) {
		s.recordViolationLocked(c, "PUT to bumId %s with an address that was given to another clientUUID than %s", g.bumID, g.clientUUID)
	}
	c.record.BumIDs, c.record.ClientUUIDs = []string{g.bumID}, []string{g.clientUUID}
	if c.fault.Kind == DeadToken {
		if err := s.commitLines(journalLine{Time: c.now, Kind: kindSpoiled, BumID: g.bumID}); err != nil {
			return nil, &denial{500, "InternalError", "We encountered an internal error. Please try again."}
		}
	}
	if !g.urlsRevokedAt.IsZero() && !signedAt.After(g.urlsRevokedAt) {
		return nil, &denial{403, "ExpiredToken", "The provided token has expired."}
	}
	return g, nil
}

// maxObject bounds the size of one PUT.
const maxObject = 5 << 30

func (s *Server) checkHeaders(c *call) *denial {
	if c.ContentLength < 0 || len(c.TransferEncoding) > 0 {
		s.recordViolation(c, "PUT without a Content-Length")
		return &denial{411, "MissingContentLength", "You must provide the Content-Length HTTP header."}
	}
	if c.ContentLength > maxObject {
		return &denial{400, "EntityTooLarge", "Your proposed upload exceeds the maximum allowed object size."}
	}
	if c.Header.Get("Expect") != "" && c.reading.Expect == "refuse" {
		return &denial{417, "ExpectationFailed", "The expectation cannot be met."}
	}
	if d := c.refuseMD5(); d != nil {
		return d
	}
	if sum, err := base64.StdEncoding.DecodeString(c.Header.Get("Content-MD5")); err != nil || len(sum) != md5.Size && len(sum) != 0 {
		return &denial{400, "InvalidDigest", "The Content-MD5 you specified is not valid."}
	}
	if strings.HasPrefix(c.Header.Get("Content-Type"), "multipart/") {
		s.recordViolation(c, "multipart PUT")
	}
	return nil
}

// refuseMD5 refuses an upload with a Content-MD5 that its address does not
// sign, in the way of the readings.
func (c *call) refuseMD5() *denial {
	if _, signed := signedHeaders(c.Request)["content-md5"]; signed || c.Header.Get("Content-MD5") == "" {
		return nil
	}
	switch c.reading.ContentMD5 {
	case "unsigned":
		return &denial{403, "AccessDenied", "There were headers present in the request which were not signed"}
	case "mismatch":
		return &denial{403, "SignatureDoesNotMatch", "The request signature we calculated does not match the signature you provided."}
	case "unknown":
		return &denial{501, "NotImplemented", "A header you provided implies functionality that is not implemented"}
	}
	return nil
}

// checkPackageType refuses a package whose Content-Type is not that of the readings.
func (c *call) checkPackageType() *denial {
	given := c.Header.Get("Content-Type")
	if _, signed := signedHeaders(c.Request)["content-type"]; !signed && c.reading.PackageType != "any" && given != c.reading.PackageType {
		return &denial{403, "AccessDenied", "Access Denied: Content-Type"}
	}
	return nil
}

// checkQuery signs the URL again and compares. A URL that is valid but not byte for byte the one that was given was encoded
// again.
func (s *Server) checkQuery(c *call, signedAt time.Time) {
	life, err := time.ParseDuration(c.URL.Query().Get("X-Amz-Expires") + "s")
	if err != nil {
		return // verify took it, so it is a number
	}
	again, err := s.keys.presign(c.Context(), c.Method, baseURL(c.Request)+c.URL.EscapedPath()+keyQuery(c.Request), signedHeaders(c.Request), signedAt, life)
	if _, query, _ := strings.Cut(again, "?"); err != nil || query != c.URL.RawQuery {
		s.recordViolation(c, "the query of the upload URL was re-encoded")
	}
}

// keyQuery returns the part of a query that names the object, where the path does not.
func keyQuery(r *http.Request) string {
	if key := r.URL.Query().Get("key"); key != "" {
		return "?key=" + url.QueryEscape(key)
	}
	return ""
}

// addressOfAnother returns the address, not signed yet, of another document's object. It is empty when there is none.
func (s *Server) addressOfAnother(c *call, g *registration) (string, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	other := s.findOther(c, g.vault)
	if other == nil {
		return "", nil
	}
	key := strings.NewReplacer(g.bumID, other.bumID).Replace
	return baseURL(c.Request) + key(c.URL.EscapedPath()) + key(keyQuery(c.Request)),
		s.commitLines(journalLine{Time: c.now, Kind: kindShared, BumID: other.bumID, ClientUUID: g.clientUUID})
}

// redirectPut redirects a PUT to another host, as stores do for another region. The new URL is valid for one window from
// now.
func (s *Server) redirectPut(c *call, to string) reply {
	u, err := s.keys.presign(c.Context(), c.Method, to, signedHeaders(c.Request), c.now, s.cfg.Window)
	if err != nil {
		return c.storeRefusal(&denial{500, "InternalError", "We encountered an internal error. Please try again."})
	}
	return c.temporaryRedirect(u)
}

func (c *call) temporaryRedirect(to string) reply {
	rep := c.storeRefusal(&denial{307, "TemporaryRedirect", "Please re-send this request to the specified temporary endpoint."})
	rep.header.Set("Location", to)
	return rep
}

// receiveBody writes the body into the objects directory under its digest. A body that ends early, or is not the one that
// Content-MD5 announced, leaves nothing, unless the readings say otherwise. One of which no byte came leaves nothing in any reading.
func (s *Server) receiveBody(c *call) (p storedPackage, sum []byte, d *denial) {
	internal := &denial{500, "InternalError", "We encountered an internal error. Please try again."}
	f, err := os.CreateTemp(s.objectsDir(), "incoming-*")
	if err != nil {
		return p, nil, internal
	}
	// After the rename below there is nothing to remove. A kill before it leaves the file, which the next server removes.
	defer os.Remove(f.Name())
	md, sha := md5.New(), sha256.New()
	n, err := io.Copy(io.MultiWriter(f, md, sha), c.Body)
	if errClose := f.Close(); errClose != nil {
		return p, nil, internal
	}
	torn := err != nil || n != c.ContentLength
	if torn && (n == 0 || c.reading.ShortBody != "keep") {
		return p, nil, &denial{400, "IncompleteBody", "You did not provide the number of bytes specified by the Content-Length HTTP header"}
	}
	want, _ := base64.StdEncoding.DecodeString(c.Header.Get("Content-MD5")) // checkHeaders decoded it
	if c.reading.ContentMD5 == "check" && len(want) > 0 && !bytes.Equal(want, md.Sum(nil)) {
		return p, nil, &denial{400, "BadDigest", "The Content-MD5 you specified did not match what we received."}
	}
	p = storedPackage{sha256: hex.EncodeToString(sha.Sum(nil)), size: n, isTruncated: torn}
	c.record.SHA256, c.record.Size = p.sha256, n
	// A kill after this rename leaves an object without a journal line: it counts for no registration.
	if err := os.Rename(f.Name(), s.objectPath(p.sha256)); err != nil {
		return p, nil, internal
	}
	return p, md.Sum(nil), nil
}

func (s *Server) objectsDir() string              { return filepath.Join(s.cfg.Dir, "objects") }
func (s *Server) objectPath(sha256 string) string { return filepath.Join(s.objectsDir(), sha256) }

// storePackage records the package for its registration, and a violation when other bytes were stored before.
func (s *Server) storePackage(c *call, g *registration, p storedPackage) *denial {
	fate := cmp.Or(s.packageProblem(p), s.cfg.FailDocument(g.documentID, g.nth))
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, other := range s.state.byClient[clientKey(g.vault, g.clientUUID)] {
		if p.isTruncated || !slices.ContainsFunc(other.packages, func(o storedPackage) bool { return !o.isTruncated && o.sha256 != p.sha256 }) {
			continue
		}
		if other == g {
			s.recordViolationLocked(c, "other bytes under bumId %s", g.bumID)
		} else {
			s.recordViolationLocked(c, "other bytes for clientUUID %s than under its bumId %s", g.clientUUID, other.bumID)
		}
	}
	landed := s.cfg.Clock()
	err := s.commitLines(journalLine{
		Time: landed, Kind: kindStored, BumID: g.bumID, SHA256: p.sha256, Size: p.size, Torn: p.isTruncated,
		Ripens: s.drawDuration(s.cfg.ArchiveMin, s.cfg.ArchiveMax), Fate: fate, Visible: c.visibleTime(landed),
		Again: c.fault.rerunDelay(), Refused: c.fault.refusesStoredPackage(),
	})
	if err != nil {
		return &denial{500, "InternalError", "We encountered an internal error. Please try again."}
	}
	return nil
}

// maxInflated bounds how much of a package is unpacked to check it.
const maxInflated = 256 << 20

// packageProblem returns why a stored package cannot be archived, or "".
func (s *Server) packageProblem(p storedPackage) string {
	if p.isTruncated {
		return "the package is not a ZIP file: it ends early"
	}
	if p.size > s.cfg.MaxPackage {
		return fmt.Sprintf("the package is larger than %d bytes", s.cfg.MaxPackage)
	}
	z, err := zip.OpenReader(s.objectPath(p.sha256))
	if err != nil {
		return "the package is not a ZIP file"
	}
	defer z.Close()
	if len(z.File) == 0 {
		return "the package is an empty ZIP file"
	}
	left := int64(maxInflated)
	for _, f := range z.File {
		n, err := countInflated(f, left)
		if err != nil {
			return "the package is not a ZIP file: an entry is damaged"
		}
		left -= n
	}
	return ""
}

func countInflated(f *zip.File, limit int64) (int64, error) {
	in, err := f.Open()
	if err != nil {
		return 0, err
	}
	defer in.Close()
	return io.Copy(io.Discard, io.LimitReader(in, limit))
}

func (s *Server) storedReply(c *call, sum []byte) reply {
	rep := reply{status: 200, header: http.Header{}}
	switch c.reading.ETag {
	case "md5":
		rep.header.Set("ETag", fmt.Sprintf("%q", hex.EncodeToString(sum)))
	case "kms":
		s.mu.Lock()
		rep.header.Set("ETag", fmt.Sprintf("%q", s.drawHex(16)))
		s.mu.Unlock()
		rep.header.Set("x-amz-server-side-encryption", "aws:kms")
	}
	return rep
}
