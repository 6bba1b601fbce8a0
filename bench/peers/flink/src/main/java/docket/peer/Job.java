package docket.peer;

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
                .withQueryStatement(Row.INSERT, (statement, row) -> row.fill(statement))
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
}
