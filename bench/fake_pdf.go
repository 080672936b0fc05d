package main

import (
	"encoding/json"
	"net/http"
	"time"

	"github.com/google/uuid"
)

// serveRegisterPDF gives one PDF a number and an address. It cannot tell one PDF from another, so each call makes a document.
func (s *fakeServer) serveRegisterPDF(w http.ResponseWriter, r *http.Request) {
	s.updateStats(func(st *fakeStats) { st.Posts++ })
	var flow struct {
		Receiving    string `json:"receivingEmailAddress"`
		Notification string `json:"notificationEmailAddress"`
	}
	if err := json.NewDecoder(r.Body).Decode(&flow); err != nil || flow.Receiving == "" || flow.Notification == "" {
		http.Error(w, `{"detail":"both addresses are needed"}`, http.StatusUnprocessableEntity)
		return
	}
	d := s.addDocument(&fakeDoc{clientUUID: uuid.NewString()})
	s.updateStats(func(st *fakeStats) { st.BatchCalls++; st.Registered++ })
	writeJSON(w, map[string]string{"uploadUrl": s.signer.presign(s.storeURL()+"/"+d.bumID+".zip", time.Now(), s.o.Window), "bumId": d.bumID})
}
