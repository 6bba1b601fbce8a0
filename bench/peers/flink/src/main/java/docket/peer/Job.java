package docket.peer;

import com.fasterxml.jackson.databind.JsonNode;
import java.nio.charset.StandardCharsets;
import java.sql.PreparedStatement;
import java.sql.SQLException;
import java.sql.Types;
import java.time.Duration;
import org.apache.flink.api.common.eventtime.WatermarkStrategy;
import org.apache.flink.configuration.Configuration;
import org.apache.flink.configuration.MemorySize;
import org.apache.flink.configuration.TaskManagerOptions;
import org.apache.flink.connector.jdbc.JdbcConnectionOptions;
import org.apache.flink.connector.jdbc.JdbcExecutionOptions;
import org.apache.flink.connector.jdbc.core.datastream.sink.JdbcSink;
import org.apache.flink.connector.kafka.source.KafkaSource;
import org.apache.flink.connector.kafka.source.enumerator.initializer.OffsetsInitializer;
import org.apache.flink.streaming.api.environment.StreamExecutionEnvironment;

/** Kafka source, JDBC sink; the offsets are committed with each checkpoint, which waits until all before it is stored. */
public class Job {
    private static final String INSERT = """
            INSERT INTO decision_logs (decision_id, ts, path, allowed, requested_by, req_id, opa_id, opa_version, service,
              labels, bundles, raw, source_topic, source_partition, source_offset, source_index)
            VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?::jsonb, ?::jsonb, ?::jsonb, ?, ?, ?, 0) ON CONFLICT DO NOTHING""";
    private static final int PARALLELISM = 3;
    private static final int BATCH = 1000;

    public static void main(String[] args) throws Exception {
        Configuration configuration = new Configuration();
        configuration.set(TaskManagerOptions.NETWORK_MEMORY_MAX, MemorySize.parse("64m"));
        configuration.set(TaskManagerOptions.NETWORK_MEMORY_MIN, MemorySize.parse("64m"));
        StreamExecutionEnvironment environment = StreamExecutionEnvironment.createLocalEnvironment(PARALLELISM, configuration);
        environment.enableCheckpointing(Duration.ofSeconds(5).toMillis());
        environment.getConfig().enableObjectReuse();
        KafkaSource<Row> source = KafkaSource.<Row>builder()
                .setBootstrapServers(System.getenv("PEER_BROKERS"))
                .setTopics(System.getenv("PEER_TOPIC"))
                .setGroupId(System.getenv("PEER_GROUP"))
                .setStartingOffsets(OffsetsInitializer.earliest())
                .setProperty("max.poll.records", "2000")
                .setProperty("max.partition.fetch.bytes", "4194304")
                .setDeserializer(new RowReader())
                .build();
        JdbcSink<Row> sink = JdbcSink.<Row>builder()
                .withQueryStatement(INSERT, Job::fill)
                .withExecutionOptions(JdbcExecutionOptions.builder().withBatchSize(BATCH).withBatchIntervalMs(200).withMaxRetries(3).build())
                .buildAtLeastOnce(new JdbcConnectionOptions.JdbcConnectionOptionsBuilder()
                        .withUrl(System.getenv("PEER_JDBC_URL") + "?reWriteBatchedInserts=true")
                        .withUsername(System.getenv("PEER_DB_USER"))
                        .withPassword(System.getenv("PEER_DB_PASSWORD"))
                        .withDriverName("org.postgresql.Driver")
                        .build());
        environment.fromSource(source, WatermarkStrategy.noWatermarks(), "decisions").sinkTo(sink);
        environment.execute("decisions");
    }

    private static void fill(PreparedStatement statement, Row row) throws SQLException {
        Decision decision = row.decision();
        statement.setString(1, decision.id());
        statement.setObject(2, decision.timestamp());
        statement.setString(3, decision.path());
        statement.setObject(4, decision.allowed(), Types.BOOLEAN);
        statement.setString(5, decision.requestedBy());
        statement.setObject(6, decision.requestId(), Types.BIGINT);
        statement.setString(7, decision.label("id"));
        statement.setString(8, decision.label("version"));
        statement.setString(9, decision.service());
        statement.setString(10, json(decision.labels()));
        statement.setString(11, json(decision.bundles()));
        statement.setString(12, new String(row.from().value(), StandardCharsets.UTF_8));
        statement.setString(13, row.from().topic());
        statement.setInt(14, row.from().partition());
        statement.setLong(15, row.from().offset());
    }

    private static String json(JsonNode node) {
        return node == null || node.isNull() ? null : node.toString();
    }
}
