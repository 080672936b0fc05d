package emulator

import (
	"net/http"
	"path"
	"strings"
)

// download answers with the archived package, or with its address.
func (s *Server) download(c *call) reply {
	s.mu.Lock()
	g := c.currentRegistration(s.state.findRegistration(c.vault, c.PathValue("bumId"), c.now), c.now)
	var k registrationState
	if g != nil {
		k = g.stateAt(c.now, c.ignoresLate())
	}
	s.mu.Unlock()
	if k.state != successful {
		return c.refusal(http.StatusNotFound, "NOT_FOUND", "no archived document with this bumId")
	}
	s.countDownload(c)
	c.record.BumIDs, c.record.SHA256, c.record.Size = []string{g.bumID}, k.content.sha256, k.content.size
	if c.reading.Download == "bytes" {
		return s.packageReply(k.content)
	}
	u, err := s.keys.presign(c.Context(), http.MethodGet, s.objectURL(c, c.vault, g.bumID+".zip"), nil, c.now, s.cfg.Window)
	switch {
	case err != nil:
		return c.refusal(500, "INTERNAL", "no download address")
	case c.reading.Download == "json":
		return jsonReply(map[string]string{"url": u})
	}
	return reply{status: http.StatusTemporaryRedirect, header: http.Header{"Location": {u}}}
}

// GrantDownloads allows n more downloads. A further one is a violation, because the provider may charge for it. Before the
// first call any number is allowed: most tests are not about money.
func (s *Server) GrantDownloads(n int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.downloadsLeft = &n
}

// countDownload counts a download that is about to be answered with the package or its address.
func (s *Server) countDownload(c *call) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.downloadsLeft == nil {
		return
	}
	if *s.downloadsLeft--; *s.downloadsLeft < 0 {
		s.recordViolationLocked(c, "download of %s beyond what was granted", c.PathValue("bumId"))
	}
}

func (s *Server) packageReply(p *storedPackage) reply {
	return reply{status: 200, header: http.Header{"Content-Type": {"application/zip"}}, file: s.objectPath(p.sha256)}
}

// fetchObject handles a GET of a pre-signed URL.
func (s *Server) fetchObject(c *call) reply {
	if c.Header.Get("Authorization") != "" {
		s.recordViolation(c, "Authorization header on a pre-signed GET")
		return c.storeRefusal(&denial{400, "InvalidArgument", "Only one auth mechanism allowed"})
	}
	if _, d := s.keys.verify(c.Request, c.now); d != nil {
		return c.storeRefusal(d)
	}
	bumID, _ := strings.CutSuffix(path.Base(c.URL.Path), ".zip")
	s.mu.Lock()
	defer s.mu.Unlock()
	if g := c.currentRegistration(s.state.byBumID[bumID], c.now); g != nil {
		if k := g.stateAt(c.now, c.ignoresLate()); k.state == successful {
			c.record.BumIDs, c.record.SHA256, c.record.Size = []string{bumID}, k.content.sha256, k.content.size
			return s.packageReply(k.content)
		}
	}
	return c.storeRefusal(&denial{404, "NoSuchKey", "The specified key does not exist."})
}
