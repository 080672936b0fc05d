package page

import (
	"golang.org/x/text/language"
	"golang.org/x/text/message/catalog"
)

// texts holds the texts of the pages. A text that is missing in a language stands there in English.
var texts = makeTexts()

func makeTexts() catalog.Catalog {
	b := catalog.NewBuilder(catalog.Fallback(language.English))
	for key, text := range german {
		if err := b.SetString(language.German, key, text); err != nil {
			panic("text " + key + ": " + err.Error()) // it is part of the program
		}
	}
	for key, text := range english {
		if err := b.SetString(language.English, key, text); err != nil {
			panic("text " + key + ": " + err.Error())
		}
	}
	return b
}

// english holds the texts whose key is no text for people.
var english = map[string]string{
	"on hold": "on hold", "in doubt": "in doubt", "CONTRADICTED": "contradicted by the archive", "TWICE": "archived twice",
	"folder claimed": "held back while it is worked on", "folder returning": "on its way back", "folder returned": "given back",
	"folder keeping": "on its way to the kept ones", "folder kept": "kept with its receipt", "folder disposing": "being removed after its time",
	"folder moved": "moved out after its time", "folder gone": "deleted after its time",
	"no sidecar": "no file that describes the invoice", "other device": "on another device",
}

// german holds the German texts. Its keys are the English ones.
var german = map[string]string{
	// The frame.
	"TEST, NO EVIDENCE": "TEST, KEIN NACHWEIS", "This is a test environment.": "Dies ist eine Testumgebung.", "Go to the content": "Zum Inhalt",
	"Pages": "Seiten", "How it stands": "Wie es steht", "Report": "Bericht", "Search": "Suchen", "number, sender, folder …": "Nummer, Absender, Ordner …",
	"Sign in": "Anmelden", "Sign out": "Abmelden", "Name": "Name", "Password": "Passwort", "not known": "nicht bekannt", "today %s": "heute %s",
	"%d s": "%d s", "%d min": "%d min", "%d h %d min": "%d h %d min", "%d h": "%d h", "%d days": "%d Tage", "%d bytes": "%d Bytes",

	// Refusals.
	"Not done": "Nicht ausgeführt", "There is no such page.": "Diese Seite gibt es nicht.",
	"Go to the first page, or search for a document.":                                                   "Gehen Sie zur ersten Seite, oder suchen Sie nach einem Dokument.",
	"vaultd could not answer.":                                                                          "vaultd konnte nicht antworten.",
	"Try it again. If it stays so, tell IT: the log has the cause.":                                     "Versuchen Sie es noch einmal. Bleibt es so, sagen Sie es der IT: Die Ursache steht im Protokoll.",
	"You may not see documents.":                                                                        "Sie dürfen keine Dokumente sehen.",
	"Sign in with a user who has the right to read (http.access in the configuration).":                 "Melden Sie sich mit einem Benutzer an, der lesen darf (http.access in der Konfiguration).",
	"You may not download documents.":                                                                   "Sie dürfen keine Dokumente herunterladen.",
	"Ask IT for the right to fetch (http.access in the configuration).":                                 "Bitten Sie die IT um das Recht zum Abruf (http.access in der Konfiguration).",
	"There is no such document.":                                                                        "Dieses Dokument gibt es nicht.",
	"Search for it by its folder, number or sender.":                                                    "Suchen Sie es nach Ordner, Nummer oder Absender.",
	"The name or the password is wrong, or you tried too often. Wait a little and try again.":           "Name oder Passwort ist falsch, oder Sie haben es zu oft versucht. Warten Sie etwas, und versuchen Sie es noch einmal.",
	"This form of a report is not known.":                                                               "Diese Form des Berichts ist nicht bekannt.",
	"This year or month is not known.":                                                                  "Dieses Jahr oder dieser Monat ist nicht bekannt.",
	"A month needs a year.":                                                                             "Zu einem Monat gehört ein Jahr.",
	"Go back and choose again.":                                                                         "Gehen Sie zurück, und wählen Sie noch einmal.",
	"Another report is being made.":                                                                     "Es wird gerade ein anderer Bericht erstellt.",
	"Wait until it is done, then ask again.":                                                            "Warten Sie, bis er fertig ist, und fragen Sie dann noch einmal.",
	"The downloads of this month are used up.":                                                          "Die Abrufe dieses Monats sind verbraucht.",
	"They are counted anew from the first day of next month. IT can raise billing.downloads_per_month.": "Am ersten Tag des nächsten Monats wird neu gezählt. Die IT kann billing.downloads_per_month erhöhen.",
	"The archive did not deliver the document.":                                                         "Das Archiv hat das Dokument nicht geliefert.",
	"The download was counted. Look at how it stands, then try again later.":                            "Der Abruf wurde gezählt. Sehen Sie nach, wie es steht, und versuchen Sie es später noch einmal.",
	"This document is not in the archive.":                                                              "Dieses Dokument ist nicht im Archiv.",
	"Its page says what became of it.":                                                                  "Auf seiner Seite steht, was daraus wurde.",

	// How it stands.
	"%d now, %d soon: a person is needed": "%d jetzt, %d bald: Jemand wird gebraucht", "%d soon: a person is needed": "%d bald: Jemand wird gebraucht",
	"vaultd does not run": "vaultd läuft nicht", "All is well: nobody is needed": "Alles in Ordnung: Niemand wird gebraucht",
	"vaultd does not answer. What you see is as of": "vaultd antwortet nicht. Was Sie sehen, ist der Stand von",
	"Last archived %s, %s ago.":                     "Zuletzt archiviert %s, vor %s.", "Nothing was archived yet.": "Es wurde noch nichts archiviert.",
	"Sign in to see documents.": "Melden Sie sich an, um Dokumente zu sehen.",
	"This page shows counts and states only. Documents need users (http.access in the configuration).": "Diese Seite zeigt nur Zahlen und Zustände. Für Dokumente braucht es Benutzer (http.access in der Konfiguration).",
	"What needs a person": "Wofür jemand gebraucht wird", "now": "jetzt", "soon": "bald", "Balance": "Bilanz", "State": "Zustand", "Documents": "Dokumente",
	"on its way": "unterwegs", "Taken": "Übernommen", "The balance agrees: each document that was taken is in exactly one state.": "Die Bilanz stimmt: Jedes übernommene Dokument ist in genau einem Zustand.",
	"The balance does not agree": "Die Bilanz stimmt nicht", "On its way": "Unterwegs", "The oldest is %s old.": "Das älteste ist %s alt.",
	"After %s a person is told.": "Nach %s wird jemandem Bescheid gesagt.", "Too old: %d.": "Zu alt: %d.", "Nothing is on its way.": "Nichts ist unterwegs.",
	"Not taken yet": "Noch nicht übernommen", "Drop folder": "Ablageordner", "Reason": "Grund", "Number": "Nummer", "Count": "Anzahl", "Longest waiting": "Wartet am längsten",
	"Nothing waits in the drop folders.": "In den Ablageordnern wartet nichts.", "Paused": "Angehalten", "Route": "Weg", "Since": "Seit", "Next try": "Nächster Versuch",
	"Waiting": "Wartend", "Why": "Warum", "Drop folders and vaults": "Ablageordner und Tresore", "Vault, drop folder": "Tresor, Ablageordner", "Archived today": "Heute archiviert",
	"Oldest": "Ältestes", "Last looked": "Zuletzt durchgesehen", "Free": "Frei", "configured no more": "nicht mehr konfiguriert", "%s of the included volume": "%s des enthaltenen Volumens",
	"paused": "angehalten", "works": "arbeitet", "Machine and cost": "Maschine und Kosten", "Disk of the ledger": "Platte des Hauptbuchs", "%s free": "%s frei",
	"Waiting packages": "Wartende Pakete", "%s of %s": "%s von %s", "Check of the ledger": "Prüfung des Hauptbuchs", "intact, %s": "unversehrt, %s", "differences, %s": "Abweichungen, %s",
	"none ended since the start": "seit dem Start ist keine beendet", "Downloads this month": "Abrufe in diesem Monat", "%d of %d": "%d von %d", "Volume of %s": "Volumen von %s",
	"Volume of all vaults": "Volumen aller Tresore", "%s of what is included": "%s des Enthaltenen", "forecast of the average: %s": "Vorhersage des Durchschnitts: %s",
	"%s MB (%s to %s)": "%s MB (%s bis %s)",

	// The charts.
	"Over time": "Im Lauf der Zeit", "Rejected folders and times are not known now:": "Abgewiesene Ordner und Zeiten sind jetzt nicht bekannt:",
	"More folders were rejected than are counted here: the oldest days and months show fewer than there were.": "Es wurden mehr Ordner abgewiesen, als hier gezählt sind: Die ältesten Tage und Monate zeigen weniger, als es waren.",
	"Documents by day": "Dokumente nach Tagen", "Documents by month": "Dokumente nach Monaten", "From taken to archived": "Von übernommen bis archiviert", "Day": "Tag", "Time": "Dauer",
	"Of the newest %d archived documents.":                                                  "Von den neuesten %d archivierten Dokumenten.",
	"The size of the average document of the year, against the size that is included (%s).": "Die Größe des durchschnittlichen Dokuments im Jahr, gemessen an der enthaltenen Größe (%s).",
	"Chart": "Diagramm", "used": "verbraucht", "forecast, with its bounds": "Vorhersage mit ihren Grenzen", "included": "enthalten", "Figures": "Zahlen", "Share": "Anteil",
	"forecast for 31 December": "Vorhersage für den 31. Dezember", "%s (%s to %s)": "%s (%s bis %s)", "%s or more": "%s oder mehr", "under %s": "unter %s", "%s to %s": "%s bis %s",
	"Archived and rejected documents by day. The table below has the figures.":                         "Archivierte und abgewiesene Dokumente nach Tagen. Die Tabelle darunter hat die Zahlen.",
	"Archived and rejected documents by month. The table below has the figures.":                       "Archivierte und abgewiesene Dokumente nach Monaten. Die Tabelle darunter hat die Zahlen.",
	"Archived documents by the time from taken to archived. The table below has the figures.":          "Archivierte Dokumente nach der Zeit von übernommen bis archiviert. Die Tabelle darunter hat die Zahlen.",
	"Share of the included volume by month of %s, with its forecast. The table below has the figures.": "Anteil am enthaltenen Volumen nach Monaten des Jahres %s, mit Vorhersage. Die Tabelle darunter hat die Zahlen.",

	// What needs a person.
	"Another vaultd has taken over": "Ein anderer vaultd hat übernommen", "Safe mode": "Sicherer Betrieb", "The ledger is damaged": "Das Hauptbuch ist beschädigt",
	"The new configuration is not in use": "Die neue Konfiguration ist nicht in Gebrauch", "Files are not what the ledger says": "Dateien sind nicht, was das Hauptbuch sagt",
	"The check of the ledger is not complete": "Die Prüfung des Hauptbuchs ist nicht vollständig", "The disk is full": "Die Platte ist voll", "A drop folder is paused": "Ein Ablageordner ist angehalten",
	"The archive contradicts itself": "Das Archiv widerspricht sich", "Archived more than once": "Mehrfach archiviert", "The clock is wrong": "Die Uhr geht falsch", "Not taken": "Nicht übernommen",
	"Cannot be read": "Nicht lesbar", "Open for too long": "Zu lange offen", "Kept folders are not what was archived": "Aufbewahrte Ordner sind nicht, was archiviert wurde", "Rejected": "Abgewiesen",
	"Quarantined": "In Quarantäne", "A decision is needed": "Eine Entscheidung fehlt", "Same invoice number as another one": "Gleiche Rechnungsnummer wie eine andere",
	"A date that can hardly be right": "Ein Datum, das kaum stimmen kann", "The ledger belongs to other accounts": "Das Hauptbuch gehört zu anderen Konten",

	// States, folders, reasons.
	"discovered": "übernommen", "packaged": "gepackt", "registering": "wird angemeldet", "registered": "angemeldet", "sending": "wird gesendet", "uploaded": "gesendet", "unclear": "unklar",
	"archived": "archiviert", "delivered": "zugestellt", "duplicate": "Duplikat", "rejected": "abgewiesen", "quarantined": "in Quarantäne", "not taken": "nicht übernommen",
	"on hold": "angehalten", "in doubt": "im Zweifel", "resolved": "erledigt", "CONTRADICTED": "vom Archiv widersprochen", "TWICE": "doppelt archiviert",
	"folder claimed": "zurückgehalten, solange daran gearbeitet wird", "folder returning": "auf dem Weg zurück", "folder returned": "zurückgegeben", "folder keeping": "auf dem Weg zu den aufbewahrten",
	"folder kept": "mit Beleg aufbewahrt", "folder disposing": "wird nach Ablauf der Frist entfernt", "folder moved": "nach Ablauf der Frist verschoben", "folder gone": "nach Ablauf der Frist gelöscht",
	"loose file": "lose Datei", "no sidecar": "keine Datei, die die Rechnung beschreibt", "still copying": "wird noch kopiert", "temporary name": "vorläufiger Name", "incomplete": "unvollständig",
	"no right": "kein Recht", "busy": "in Gebrauch", "other device": "auf einem anderen Gerät", "read-only": "schreibgeschützt", "no room": "kein Platz", "failed": "fehlgeschlagen", "queued": "wartet auf einen Platz", "held": "wird nicht übernommen, bis jemand entscheidet",

	// What is certain in a state; the English sentences are those of the command "show".
	"Taken from the drop folder; it is packed as soon as it has not changed for a while.":                             "Aus dem Ablageordner übernommen; es wird gepackt, sobald es sich eine Weile nicht geändert hat.",
	"Packed; it waits to be registered with the archive.":                                                             "Gepackt; es wartet auf die Anmeldung beim Archiv.",
	"Being registered with the archive; the answer is not known yet.":                                                 "Wird beim Archiv angemeldet; die Antwort ist noch nicht bekannt.",
	"Registered with the archive; nothing of it has been sent yet.":                                                   "Beim Archiv angemeldet; noch ist nichts davon gesendet.",
	"Being sent; the archive may have parts of it, or all.":                                                           "Wird gesendet; das Archiv hat vielleicht Teile davon oder alles.",
	"Sent completely; the archive has not yet said that it is archived.":                                              "Vollständig gesendet; das Archiv hat noch nicht gesagt, dass es archiviert ist.",
	"Sent, but nobody knows whether it arrived; the archive is being asked, nothing is sent again until it is clear.": "Gesendet, aber niemand weiß, ob es ankam; das Archiv wird gefragt, und nichts wird noch einmal gesendet, bis es klar ist.",
	"The archive itself said that it is archived.":                                                                    "Das Archiv selbst hat gesagt, dass es archiviert ist.",
	"Delivered; no later word comes on this way.":                                                                     "Zugestellt; auf diesem Weg kommt keine weitere Nachricht.",
	"The same invoice is archived already; nothing was sent and there is nothing to do.":                              "Dieselbe Rechnung ist schon archiviert; nichts wurde gesendet, und es ist nichts zu tun.",
	"Not archived; certainly nothing of it is in the archive.":                                                        "Nicht archiviert; sicher ist nichts davon im Archiv.",
	"Stopped: it cannot go on by itself, and something of it may be in the archive. A person must decide.":            "Angehalten: Es geht nicht von selbst weiter, und vielleicht ist etwas davon im Archiv. Jemand muss entscheiden.",
	"Closed in doubt by a person: something of it may be in the archive all the same.":                                "Von jemandem im Zweifel geschlossen: Vielleicht ist doch etwas davon im Archiv.",
	"A state that this version does not know.":                                                                        "Ein Zustand, den diese Version nicht kennt.",
	"on hold: no further step until somebody lets it go on":                                                           "angehalten: kein weiterer Schritt, bis jemand es weitergehen lässt",
	"closed in doubt, though content at the archive is possible":                                                      "im Zweifel geschlossen, obwohl Inhalt im Archiv möglich ist",
	"ARCHIVED TWICE: the archive says so of more than one registration":                                               "DOPPELT ARCHIVIERT: Das Archiv sagt es von mehr als einer Anmeldung",
	"possibly double: more than one registration may hold its content":                                                "vielleicht doppelt: Mehr als eine Anmeldung kann den Inhalt haben",
	"CONTRADICTED: the archive says something else than this final state":                                             "WIDERSPROCHEN: Das Archiv sagt etwas anderes als dieser Endzustand",
	"resolved: nobody needs to look at it any more":                                                                   "erledigt: Niemand muss mehr danach sehen",
	"looked at: a person let its number or date stand":                                                                "angesehen: Jemand hat Nummer oder Datum so gelassen",
	"unused: no byte was ever sent to it":                                                                             "ungenutzt: Kein Byte wurde je dorthin gesendet",
	"bytes may have arrived":                                                                                          "vielleicht sind Bytes angekommen",
	"the content arrived":                                                                                             "der Inhalt kam an",
	"failed at the archive, or never got anything":                                                                    "beim Archiv gescheitert, oder es kam nie etwas an",
	"refused by the store, which may have kept it":                                                                    "vom Speicher abgelehnt, der es vielleicht behalten hat",

	// The search.
	"Search for “%s”": "Suche nach „%s“", "These are too many words.": "Das sind zu viele Wörter.",
	"A star or a question mark stands for nothing here: a word is found in the middle of a name or number too.":                                                      "Stern und Fragezeichen stehen hier für nichts: Ein Wort wird auch mitten in einem Namen oder einer Nummer gefunden.",
	"Write part of a folder's name, an invoice number, the name or number of a sender or recipient, a bumId, a clientUUID or a key. Every word must occur. Example:": "Schreiben Sie einen Teil des Ordnernamens, eine Rechnungsnummer, Name oder Nummer eines Absenders oder Empfängers, eine bumId, eine clientUUID oder einen Schlüssel. Jedes Wort muss vorkommen. Beispiel:",
	"The search took too long and was ended. There may be more than is shown: add a word.":                                                                           "Die Suche dauerte zu lange und wurde beendet. Vielleicht gibt es mehr, als hier steht: Schreiben Sie ein Wort mehr.",
	"The newest %d. There are more: add a word.": "Die neuesten %d. Es gibt mehr: Schreiben Sie ein Wort mehr.",
	"Found: %d": "Gefunden: %d",
	"Nothing was ever taken with these words. Try fewer words.": "Mit diesen Wörtern wurde nie etwas übernommen. Versuchen Sie es mit weniger Wörtern.",
	"since %s":            "seit %s",
	"taken %s":            "übernommen %s",
	"Date":                "Datum",
	"Sender":              "Absender",
	"Recipient":           "Empfänger",
	"Amount":              "Betrag",
	"Number (as read)":    "Nummer (wie gelesen)",
	"Date (as read)":      "Datum (wie gelesen)",
	"Sender (as read)":    "Absender (wie gelesen)",
	"Recipient (as read)": "Empfänger (wie gelesen)",
	"Amount (as read)":    "Betrag (wie gelesen)",

	// One document.
	"the other document": "das andere Dokument", "The same invoice is archived as": "Dieselbe Rechnung ist archiviert als", "Invoice": "Rechnung",
	"As read in the file of the folder; nobody checked it.": "Wie in der Datei des Ordners gelesen; niemand hat es geprüft.", "Nothing is known of the invoice.": "Von der Rechnung ist nichts bekannt.",
	"Proof": "Nachweis", "Download from the archive": "Aus dem Archiv herunterladen",
	"The provider may charge for a download. %d of %d are used this month. Each one is recorded.": "Der Anbieter kann einen Abruf berechnen. In diesem Monat sind %d von %d verbraucht. Jeder wird aufgezeichnet.",
	"Files in the ZIP": "Dateien im ZIP", "File": "Datei", "Size": "Größe", "Registrations with the archive": "Anmeldungen beim Archiv", "What is known": "Was bekannt ist", "Sent": "Gesendet",
	"The archive last said": "Das Archiv sagte zuletzt", "What happened": "Was geschah", "Archived": "Archiviert", "Vault": "Tresor", "Folder": "Ordner", "Key": "Schlüssel", "Type": "Art",
	"Numbers of the sender": "Nummern des Absenders", "Numbers of the recipient": "Nummern des Empfängers", "Buyer's reference": "Zeichen des Käufers", "Trading partner": "Handelspartner", "Direction": "Richtung",
	"archive says %s": "Archiv sagt %s", "bumId %s": "bumId %s", "cause: %s": "Ursache: %s", "by %s": "von %s",

	// What happened.
	"Taken from the drop folder.": "Aus dem Ablageordner übernommen.", "It was still changing; vaultd waits.": "Es änderte sich noch; vaultd wartet.", "The next step was postponed.": "Der nächste Schritt wurde verschoben.",
	"Packed into a ZIP and sealed.": "In ein ZIP gepackt und versiegelt.", "Packed again; the content is the same.": "Noch einmal gepackt; der Inhalt ist derselbe.", "Refused before anything was sent.": "Abgewiesen, bevor etwas gesendet wurde.",
	"Found to be archived already; nothing is sent.": "Ist schon archiviert; nichts wird gesendet.", "It cannot go on by itself.": "Es geht nicht von selbst weiter.", "A person put it on hold.": "Jemand hat es angehalten.",
	"A person let it go on.": "Jemand hat es weitergehen lassen.", "A person closed it.": "Jemand hat es geschlossen.", "A person decided how it goes on.": "Jemand hat entschieden, wie es weitergeht.",
	"Another folder takes its place.": "Ein anderer Ordner tritt an seine Stelle.", "It was taken again.": "Es wurde noch einmal übernommen.", "It is not sure what was done since; the archive is asked.": "Es ist nicht sicher, was seither geschah; das Archiv wird gefragt.",
	"The archive knows a registration that vaultd did not know.": "Das Archiv kennt eine Anmeldung, die vaultd nicht kannte.", "The archive was asked for everything; it is sure again.": "Das Archiv wurde nach allem gefragt; es ist wieder sicher.",
	"The folder was found again.": "Der Ordner wurde wiedergefunden.", "Put back into the ledger from receipts, folders or the archive.": "Aus Belegen, Ordnern oder dem Archiv ins Hauptbuch zurückgeholt.",
	"About to be registered with the archive.": "Wird gleich beim Archiv angemeldet.", "The archive did not answer the registration.": "Das Archiv hat auf die Anmeldung nicht geantwortet.",
	"The archive did not take the registration.": "Das Archiv hat die Anmeldung nicht angenommen.", "The archive refused a group of registrations.": "Das Archiv hat eine Gruppe von Anmeldungen abgelehnt.",
	"The archive refused the registration.": "Das Archiv hat die Anmeldung abgelehnt.", "Registered with the archive.": "Beim Archiv angemeldet.", "The answer of the archive was mixed up.": "Die Antwort des Archivs war durcheinander.",
	"About to be sent.": "Wird gleich gesendet.", "Nothing was sent.": "Nichts wurde gesendet.", "The store did not answer; it may have it.": "Der Speicher hat nicht geantwortet; vielleicht hat er es.",
	"The store refused it.": "Der Speicher hat es abgelehnt.", "Sent completely.": "Vollständig gesendet.", "The time for sending is over.": "Die Zeit zum Senden ist um.",
	"The folder is about to be moved to its place.": "Der Ordner wird gleich an seinen Platz gebracht.", "The folder is at its place.": "Der Ordner ist an seinem Platz.",
	"The kept folder is about to be removed.": "Der aufbewahrte Ordner wird gleich entfernt.", "The kept folder was removed as configured.": "Der aufbewahrte Ordner wurde entfernt, wie konfiguriert.",
	"The kept folder is not removed.": "Der aufbewahrte Ordner wird nicht entfernt.", "The archive was asked.": "Das Archiv wurde gefragt.",

	// The report.
	"The report says what was dropped, what became of it, and what is not proven. It goes by the date of the document; where there is none, by the day on which it was taken. Of a large archive it takes some minutes.": "Der Bericht sagt, was abgelegt wurde, was daraus wurde und was nicht bewiesen ist. Er richtet sich nach dem Datum des Dokuments; wo es fehlt, nach dem Tag der Übernahme. Bei einem großen Archiv dauert er einige Minuten.",
	"Year": "Jahr", "all years": "alle Jahre", "Month": "Monat", "the whole year": "das ganze Jahr", "Form": "Form", "page to read and print (HTML)": "Seite zum Lesen und Drucken (HTML)",
	"table for a spreadsheet (XLSX)": "Tabelle für die Tabellenkalkulation (XLSX)", "table as text, with commas (CSV)": "Tabelle als Text, mit Kommas (CSV)",
	"table as text, with semicolons (CSV)": "Tabelle als Text, mit Semikolons (CSV)", "Make the report": "Bericht erstellen",
}
