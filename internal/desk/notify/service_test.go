package notify

import (
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/nicholas-fedor/shoutrrr/pkg/types"
	"github.com/rs/zerolog"
)

func TestService_Slack(t *testing.T) {
	t.Parallel()
	slack.turn.Lock()
	defer slack.turn.Unlock()
	const hookToken, apiToken = "T0AAAAAAA/B0BBBBBBB/cccccccccccccccccccccccc", "xoxb-123456789012-1234567890123-4mt0t4l1YL3g1T5L4cK70k3N"
	for _, c := range []struct{ url, path, token, answer string }{
		{"slack://hook:" + strings.ReplaceAll(hookToken, "/", "-") + "@webhook", "/services/" + hookToken, "", "ok"},
		{"slack://" + strings.Replace(apiToken, "xoxb-", "xoxb:", 1) + "@C001CHANNEL", "/api/chat.postMessage", "Bearer " + apiToken, `{"ok":true}`},
	} {
		slack.mu.Lock()
		slack.posts, slack.answer = nil, c.answer
		slack.mu.Unlock()
		channels, log := start(t, c.url)
		stop := running(t, channels)
		m := example
		m.Lines = append([]string{"a < b & c > d"}, m.Lines...)
		channels.Send(m)
		until(t, "it is sent", func() bool { return channels.count("slack 1", sent)+channels.count("slack 1", failed) == 1 })
		stop()
		if s := log.String(); channels.count("slack 1", sent) != 1 || strings.Contains(s, "cccccc") || strings.Contains(s, "4mt0") {
			t.Fatal(s)
		}
		p := slack.got()[0]
		if p.url != c.path || p.header.Get("Authorization") != c.token {
			t.Errorf("%s, %q", p.url, p.header.Get("Authorization"))
		}
		var body struct {
			Text        string
			Attachments []struct{ Text string }
		}
		if err := json.Unmarshal(p.body, &body); err != nil || body.Text != example.Title || len(body.Attachments) != 3 || body.Attachments[0].Text != "a &lt; b &amp; c &gt; d" {
			t.Errorf("%v %s", err, p.body)
		}
	}
}

func TestService_SlackRefusal(t *testing.T) {
	t.Parallel()
	slack.turn.Lock()
	defer slack.turn.Unlock()
	slack.mu.Lock()
	slack.posts, slack.answer, slack.status = nil, "invalid_token s3cret", []int{403, 403, 403}
	slack.mu.Unlock()
	channels, log := start(t, "slack://hook:T0AAAAAAA-B0BBBBBBB-cccccccccccccccccccccccc@webhook")
	stop := running(t, channels)
	channels.Send(example)
	until(t, "it has failed", func() bool { return channels.count("slack 1", failed) == 1 })
	stop()
	if s := log.String(); len(slack.got()) != 3 || !strings.Contains(s, `"channel":"slack 1","reason":"the service did not take it"`) ||
		strings.Contains(s, "ccccc") || strings.Contains(s, "s3cret") {
		t.Error(s)
	}
}

func TestService_Mail(t *testing.T) {
	t.Parallel()
	server := newMailServer(t, false, 235)
	c, log := start(t, "smtp://desk:s3cret@"+server.Addr().String()+"/?from=desk@example.com&to=ops@example.com,on@example.com")
	running(t, c)
	m := example
	m.Title = "4 dead letters\r\nBcc: evil@example.com – é"
	m.Lines = []string{".", "a line\r\n.\r\nQUIT"}
	c.Send(m)
	until(t, "it is sent", func() bool { return c.count("smtp 1", sent) == 1 })
	mails := server.got()
	if len(mails) != 2 {
		t.Fatalf("%d mails", len(mails))
	}
	head, body, _ := strings.Cut(mails[0], "\n\n")
	if !strings.Contains(head, "Subject: [docket] 4 dead letters Bcc: evil@example.com ? ?") || strings.Contains(head, "\nBcc") ||
		!strings.HasPrefix(body, "4 dead letters Bcc: evil@example.com – é\n..\na line . QUIT\n\n20") {
		t.Errorf("%q", mails[0])
	}
	if strings.Contains(log.String(), "s3cret") || strings.Contains(log.String(), "ops@") {
		t.Error(log)
	}
}

func TestService_MailRefusalByCode(t *testing.T) {
	t.Parallel()
	server := newMailServer(t, false, 535)
	c, log := start(t, "smtp://desk:s3cret@"+server.Addr().String()+"/?from=desk@example.com&to=ops@example.com")
	running(t, c)
	c.Send(example)
	until(t, "it is logged", func() bool { return strings.Contains(log.String(), `"reason":"the mail server answered 535"`) })
	if s := log.String(); strings.Contains(s, "s3cret") || len(server.got()) != 0 {
		t.Error(s)
	}
}

func TestService_SilentMailServer(t *testing.T) {
	t.Parallel()
	server := newMailServer(t, true, 0)
	c, log := start(t, "smtp://"+server.Addr().String()+"/?from=desk@example.com&to=ops@example.com")
	c.channels[0].limit = 10 * time.Millisecond
	stop := running(t, c)
	for range 10 {
		c.Send(example)
	}
	until(t, "all have failed", func() bool { return c.count("smtp 1", failed) == 10 })
	if n := server.connections(); n != maxHanging {
		t.Errorf("%d connections for 30 tries", n)
	}
	s := c.channels[0].sender.(*service)
	if len(s.flying) != maxHanging {
		t.Errorf("%d sends hang", len(s.flying))
	}
	for _, want := range []string{errSlow.Error(), errHanging.Error()} {
		if strings.Count(log.String(), want) != 1 {
			t.Errorf("%s in %s", want, log)
		}
	}
	server.hangUp()
	until(t, "what hung has ended", func() bool { return len(s.flying) == 0 })
	stop()
}

func TestService_Panic(t *testing.T) {
	t.Parallel()
	c, log := start(t, "logger://")
	c.channels[0].sender.(*service).make = func(string) (types.Service, error) { panic("T0KEN") }
	running(t, c)
	c.Send(example)
	until(t, "it is logged", func() bool { return strings.Contains(log.String(), errBroke.Error()) })
	if strings.Contains(log.String(), "T0KEN") {
		t.Error(log)
	}
}

func TestNew_DoesNotConnect(t *testing.T) {
	t.Parallel()
	server := newMailServer(t, true, 0)
	// Matrix's service logs in while it is made.
	c, err := New("matrix://user:password@"+server.Addr().String()+"/?disableTLS=yes smtp://"+server.Addr().String()+"/?from=a@b.c&to=a@b.c", zerolog.Nop(), nil)
	if err != nil || strings.Join(c.Names(), ",") != "log,matrix 1,smtp 2" || server.connections() != 0 {
		t.Errorf("%v, %d connections", err, server.connections())
	}
}
