package desk

import (
	"context"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"docket/internal/desk/worker"
	"docket/internal/history/archive"
	"docket/internal/postgres/historydb"
	"docket/internal/record/subject"
	"docket/internal/service/buildinfo"
	"docket/internal/service/config"
)

// archiveDays adds the duty that archives days by itself.
func (p *Program) archiveDays(reg prometheus.Registerer) error {
	s := p.settings
	of, err := subject.Parse(s.ReaderSubject)
	if err != nil {
		return config.Complaint{Variable: "DOCKET_READER_SUBJECT", Text: err.Error()}
	}
	shelf, err := shelfOf(s)(s.ArchiveTo)
	if err != nil {
		return config.Complaint{Variable: "DOCKET_ARCHIVE_TO", Text: err.Error()}
	}
	if c, ok := shelf.(interface{ Close() }); ok {
		p.parts.after(c.Close)
	}
	lines := archive.MostLine(int64(s.MaxRecordBytes))
	days := &archive.Nights{
		Carrier: archive.Carrier{Table: historydb.NewArchives(p.parts.owner.DB), Shelf: shelf, By: name, Docket: buildinfo.String(), Now: time.Now, Subject: of, LineBytes: lines},
		Letters: archive.LettersCarrier{Table: historydb.NewLetterArchives(p.parts.owner.DB), Shelf: shelf, By: name, Docket: buildinfo.String(), Now: time.Now, LineBytes: lines},
	}
	p.workers = append(p.workers, worker.NewArchiving(worker.ArchivingConfig{
		Holder: p.options.Instance, After: s.ArchiveAge(), Hours: s.QuietHours(), Lag: p.consumerLag, Metrics: worker.NewArchivingMetrics(reg),
	}, days, p.parts.ledger, p.log))
	return nil
}

// consumerLag counts the records of all lanes that wait for the consumers.
func (p *Program) consumerLag(ctx context.Context) (records int64, err error) {
	for _, l := range p.settings.Lanes() {
		u, err := p.parts.reader.Behind(ctx, l.Topic, l.Group)
		if err != nil {
			return 0, err
		}
		records += u.Records
	}
	return records, nil
}
