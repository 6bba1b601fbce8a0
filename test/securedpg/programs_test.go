//go:build integration

package securedpg

import (
	"encoding/json"
	"io"
	"net/http"
	"os"
	"strings"
	"syscall"
	"testing"

	"github.com/twmb/franz-go/pkg/kfake"

	"docket/internal/programs/cli"
	"docket/internal/programs/desk"
	"docket/internal/service/app"
	"docket/internal/service/config"
	"docket/internal/testkit/kafkatest"
	"docket/internal/testkit/output"
	"docket/internal/testkit/testenv"
)

// program runs like its command line, in this process.
type program struct {
	t     testing.TB
	addr  string
	out   *output.Buffer
	stop  chan os.Signal
	ended chan int
}

// world is a Kafka and the settings of the programs.
type world struct {
	t     testing.TB
	kafka *kafkatest.Cluster
	env   []string
}

const topic = "decision-logs"

func newWorld(t testing.TB, urlFile string, env ...string) *world {
	t.Helper()
	w := &world{t: t, kafka: kafkatest.New(t, kfake.SeedTopics(1, topic, "decision-logs-parking", "decision-logs-dlq", "decision-logs-parking-dlq"))}
	w.env = append([]string{
		"DOCKET_KAFKA_BROKERS=" + strings.Join(w.kafka.Brokers(), ","), "DOCKET_DATABASE_URL_FILE=" + urlFile,
		"DOCKET_RETRY_PAUSES=10ms", "DOCKET_PROBE_INTERVAL=50ms", "DOCKET_PARK_BATCHES=1", "DOCKET_BATCH_MAX_WAIT=10ms",
		"DOCKET_DESK_API_ADDR=127.0.0.1:0", "DOCKET_LOG_LEVEL=debug", "DOCKET_PARTITIONS_AHEAD=1",
		"DOCKET_KAFKA_SESSION_TIMEOUT=6s",
	}, env...)
	return w
}

func (w *world) start(name config.Program) *program {
	w.t.Helper()
	addr, err := testenv.FreeAddr()
	if err != nil {
		w.t.Fatal(err)
	}
	p := &program{t: w.t, addr: addr, out: &output.Buffer{}, stop: make(chan os.Signal, 2), ended: make(chan int, 1)}
	env := cli.Env{
		Program: name, Environ: append([]string{"DOCKET_HTTP_ADDR=" + addr, "DOCKET_SPOOL_DIR=" + w.t.TempDir()}, w.env...),
		Stdout: p.out, Stderr: p.out, Signals: p.stop, Judges: desk.Judges(), Options: app.Options{Instance: string(name)},
	}
	go func() {
		if name == config.Desk {
			p.ended <- desk.Main(env, nil)
			return
		}
		p.ended <- cli.Main(env, []cli.Command{cli.Run("run", false)})
	}()
	w.t.Cleanup(func() {
		p.stop <- syscall.SIGTERM
		if code := <-p.ended; code != 0 {
			w.t.Errorf("the %s ended with %d:\n%s", name, code, p.out)
		}
	})
	return p
}

// command runs one of the consumer's commands.
func (w *world) command(args ...string) (out string, code int) {
	w.t.Helper()
	var b output.Buffer
	code = cli.Main(cli.Env{
		Program: config.Consumer, Args: args, Environ: append([]string{"DOCKET_SPOOL_DIR="}, w.env...), Stdout: &b, Stderr: &b,
		Signals: make(chan os.Signal),
	}, []cli.Command{cli.Check(), cli.Migrate(), cli.Verify(), cli.WhereIs()})
	return b.String(), code
}

// ready calls /readyz. It returns whether the program is ready, and the reasons.
func (p *program) ready() (ready bool, reasons []app.Reason) {
	resp, err := http.Get("http://" + p.addr + "/readyz")
	if err != nil {
		return false, nil
	}
	defer func() { _ = resp.Body.Close() }()
	body, err := io.ReadAll(resp.Body)
	if err != nil {
		return false, nil
	}
	var r struct {
		Reasons []app.Reason `json:"reasons"`
	}
	if err := json.Unmarshal(body, &r); err != nil {
		p.t.Fatalf("/readyz: %v: %s", err, body)
	}
	return resp.StatusCode == http.StatusOK, r.Reasons
}

// alive fails the test if the program has ended.
func (p *program) alive() {
	p.t.Helper()
	select {
	case code := <-p.ended:
		p.ended <- code
		p.t.Fatalf("it ended with %d:\n%s", code, p.out)
	default:
	}
}
