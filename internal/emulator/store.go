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
	"path"
	"path/filepath"
	"slices"
	"strings"
	"time"
)

// storeObject takes a PUT to a pre-signed URL, as an object store does: nothing of the API's credentials, a known
// length, and either the whole body or nothing at all, unless the readings make it a careless one.
func (s *Server) storeObject(c *call) reply {
	if c.Header.Get("Authorization") != "" {
		s.violate(c, "Authorization header on a pre-signed PUT")
		return c.denied(&denial{400, "InvalidArgument", "Only one auth mechanism allowed"})
	}
	if c.Method != http.MethodPut {
		return c.denied(&denial{405, "MethodNotAllowed", "The specified method is not allowed against this resource."})
	}
	signedAt, d := s.keys.verify(c.Request, c.now)
	if d != nil {
		return c.denied(d)
	}
	g, d := s.target(c, signedAt)
	if d == nil {
		d = s.checkHeaders(c)
	}
	if d != nil {
		return c.denied(d)
	}
	s.checkQuery(c, signedAt)
	if to := strings.TrimSuffix(c.reading.StoreRedirectTo, "/"); to != "" && to != baseURL(c.Request) {
		return s.redirectPut(c, to+c.URL.EscapedPath()+keyQuery(c.Request))
	}
	if c.fault.Kind == RedirectAway {
		if to, err := s.addressOfAnother(c, g); err != nil || to != "" {
			return s.redirectPut(c, to)
		}
	}
	p, sum, d := s.receive(c)
	if d == nil && c.fault.Kind != Vanish {
		d = s.keep(c, g, p)
	}
	if d != nil {
		return c.denied(d)
	}
	return s.stored(c, sum)
}

// target finds the registration that the URL belongs to.
func (s *Server) target(c *call, signedAt time.Time) (*registration, *denial) {
	bumID, _ := strings.CutSuffix(path.Base(cmp.Or(c.URL.Query().Get("key"), c.URL.Path)), ".zip")
	s.mu.Lock()
	defer s.mu.Unlock()
	g := s.book.byBumID[bumID]
	if s.book.poisoned[bumID] {
		s.violateLocked(c, "PUT to bumId %s, which no answer gave to one clientUUID alone", bumID)
	}
	if g == nil {
		return nil, &denial{404, "NoSuchKey", "The specified key does not exist."}
	}
	if slices.ContainsFunc(g.shared, func(at time.Time) bool { return at.Truncate(time.Second).Equal(signedAt) }) && !g.lastSigned().Truncate(time.Second).Equal(signedAt) {
		s.violateLocked(c, "PUT to bumId %s with an address that was given to another clientUUID than %s", g.bumID, g.clientUUID)
	}
	c.line.BumIDs, c.line.ClientUUIDs = []string{g.bumID}, []string{g.clientUUID}
	if c.fault.Kind == DeadToken {
		if err := s.commit(line{Time: c.now, Kind: kindSpoiled, BumID: g.bumID}); err != nil {
			return nil, &denial{500, "InternalError", "We encountered an internal error. Please try again."}
		}
	}
	if !g.spoiled.IsZero() && !signedAt.After(g.spoiled) {
		return nil, &denial{403, "ExpiredToken", "The provided token has expired."}
	}
	return g, nil
}

// maxObject is what one PUT may carry.
const maxObject = 5 << 30

func (s *Server) checkHeaders(c *call) *denial {
	if c.ContentLength < 0 || len(c.TransferEncoding) > 0 {
		s.violate(c, "PUT without a Content-Length")
		return &denial{411, "MissingContentLength", "You must provide the Content-Length HTTP header."}
	}
	if c.ContentLength > maxObject {
		return &denial{400, "EntityTooLarge", "Your proposed upload exceeds the maximum allowed object size."}
	}
	if sum, err := base64.StdEncoding.DecodeString(c.Header.Get("Content-MD5")); err != nil || len(sum) != md5.Size && len(sum) != 0 {
		return &denial{400, "InvalidDigest", "The Content-MD5 you specified is not valid."}
	}
	given := c.Header.Get("Content-Type")
	if strings.HasPrefix(given, "multipart/") {
		s.violate(c, "multipart PUT")
	}
	if _, signed := signedHeaders(c.Request)["content-type"]; !signed && c.reading.PackageType != "any" && given != c.reading.PackageType {
		return &denial{403, "AccessDenied", "Access Denied: Content-Type"}
	}
	return nil
}

// checkQuery signs the URL again: one that is valid but not byte for byte the one that was given has been re-encoded.
func (s *Server) checkQuery(c *call, signedAt time.Time) {
	life, err := time.ParseDuration(c.URL.Query().Get("X-Amz-Expires") + "s")
	if err != nil {
		return // verify took it, so it is a number
	}
	again, err := s.keys.presign(c.Context(), c.Method, baseURL(c.Request)+c.URL.EscapedPath()+keyQuery(c.Request), signedHeaders(c.Request), signedAt, life)
	if _, query, _ := strings.Cut(again, "?"); err != nil || query != c.URL.RawQuery {
		s.violate(c, "the query of the upload URL was re-encoded")
	}
}

// keyQuery is the part of a query that names the object, where the path does not.
func keyQuery(r *http.Request) string {
	if key := r.URL.Query().Get("key"); key != "" {
		return "?key=" + url.QueryEscape(key)
	}
	return ""
}

// addressOfAnother is the address, not yet signed, of an object that another document has; empty: there is none.
func (s *Server) addressOfAnother(c *call, g *registration) (string, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	other := s.anyOther(c, g.vault)
	if other == nil {
		return "", nil
	}
	key := strings.NewReplacer(g.bumID, other.bumID).Replace
	return baseURL(c.Request) + key(c.URL.EscapedPath()) + key(keyQuery(c.Request)),
		s.commit(line{Time: c.now, Kind: kindShared, BumID: other.bumID, ClientUUID: g.clientUUID})
}

// redirectPut sends a PUT to another host, as stores do for another region; the new URL lives one window from now.
func (s *Server) redirectPut(c *call, to string) reply {
	u, err := s.keys.presign(c.Context(), c.Method, to, signedHeaders(c.Request), c.now, s.cfg.Window)
	if err != nil {
		return c.denied(&denial{500, "InternalError", "We encountered an internal error. Please try again."})
	}
	rep := c.denied(&denial{307, "TemporaryRedirect", "Please re-send this request to the specified temporary endpoint."})
	rep.header.Set("Location", u)
	return rep
}

// receive takes the body into the objects directory under its digest. It is written aside first: a body that ends
// early, or is not what Content-MD5 announced, leaves nothing, unless the readings say otherwise.
func (s *Server) receive(c *call) (p put, sum []byte, d *denial) {
	internal := &denial{500, "InternalError", "We encountered an internal error. Please try again."}
	f, err := os.CreateTemp(s.objects(), "incoming-*")
	if err != nil {
		return p, nil, internal
	}
	defer os.Remove(f.Name()) // gone already when all went well
	md, sha := md5.New(), sha256.New()
	n, err := io.Copy(io.MultiWriter(f, md, sha), c.Body)
	if errClose := f.Close(); errClose != nil {
		return p, nil, internal
	}
	torn := err != nil || n != c.ContentLength
	if torn && c.reading.ShortBody != "keep" {
		return p, nil, &denial{400, "IncompleteBody", "You did not provide the number of bytes specified by the Content-Length HTTP header"}
	}
	want, _ := base64.StdEncoding.DecodeString(c.Header.Get("Content-MD5")) // checkHeaders decoded it
	if c.reading.ContentMD5 == "check" && len(want) > 0 && !bytes.Equal(want, md.Sum(nil)) {
		return p, nil, &denial{400, "BadDigest", "The Content-MD5 you specified did not match what we received."}
	}
	p = put{sha256: hex.EncodeToString(sha.Sum(nil)), size: n, torn: torn}
	c.line.SHA256, c.line.Size = p.sha256, n
	if err := os.Rename(f.Name(), s.object(p.sha256)); err != nil {
		return p, nil, internal
	}
	return p, md.Sum(nil), nil
}

func (s *Server) objects() string             { return filepath.Join(s.cfg.Dir, "objects") }
func (s *Server) object(sha256 string) string { return filepath.Join(s.objects(), sha256) }

// keep makes the package count, and remembers when it is not the one that was stored before.
func (s *Server) keep(c *call, g *registration, p put) *denial {
	fate := cmp.Or(s.packageProblem(p), s.cfg.FailDocument(g.documentID, g.nth))
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, other := range s.book.byClient[clientKey(g.vault, g.clientUUID)] {
		if p.torn || !slices.ContainsFunc(other.puts, func(o put) bool { return !o.torn && o.sha256 != p.sha256 }) {
			continue
		}
		if other == g {
			s.violateLocked(c, "other bytes under bumId %s", g.bumID)
		} else {
			s.violateLocked(c, "other bytes for clientUUID %s than under its bumId %s", g.clientUUID, other.bumID)
		}
	}
	landed := s.cfg.Clock()
	err := s.commit(line{
		Time: landed, Kind: kindStored, BumID: g.bumID, SHA256: p.sha256, Size: p.size, Torn: p.torn,
		Ripens: s.draw(s.cfg.ArchiveMin, s.cfg.ArchiveMax), Fate: fate, Visible: c.lag(landed),
		Again: c.fault.again(), Refused: c.fault.refusesStored(),
	})
	if err != nil {
		return &denial{500, "InternalError", "We encountered an internal error. Please try again."}
	}
	return nil
}

// maxInflated bounds how much of a package is unpacked to check it.
const maxInflated = 256 << 20

// packageProblem says why a stored package cannot be archived, "" if it can.
func (s *Server) packageProblem(p put) string {
	if p.torn {
		return "the package is not a ZIP file: it ends early"
	}
	if p.size > s.cfg.MaxPackage {
		return fmt.Sprintf("the package is larger than %d bytes", s.cfg.MaxPackage)
	}
	z, err := zip.OpenReader(s.object(p.sha256))
	if err != nil {
		return "the package is not a ZIP file"
	}
	defer z.Close()
	if len(z.File) == 0 {
		return "the package is an empty ZIP file"
	}
	left := int64(maxInflated)
	for _, f := range z.File {
		n, err := inflate(f, left)
		if err != nil {
			return "the package is not a ZIP file: an entry is damaged"
		}
		left -= n
	}
	return ""
}

func inflate(f *zip.File, limit int64) (int64, error) {
	in, err := f.Open()
	if err != nil {
		return 0, err
	}
	defer in.Close()
	return io.Copy(io.Discard, io.LimitReader(in, limit))
}

func (s *Server) stored(c *call, sum []byte) reply {
	rep := reply{status: 200, header: http.Header{}}
	switch c.reading.ETag {
	case "md5":
		rep.header.Set("ETag", fmt.Sprintf("%q", hex.EncodeToString(sum)))
	case "kms":
		s.mu.Lock()
		rep.header.Set("ETag", fmt.Sprintf("%q", s.hex(16)))
		s.mu.Unlock()
		rep.header.Set("x-amz-server-side-encryption", "aws:kms")
	}
	return rep
}
