package docket.peer;

import com.fasterxml.jackson.databind.ObjectMapper;
import com.fasterxml.jackson.databind.ObjectReader;
import java.io.IOException;
import java.io.UncheckedIOException;
import java.sql.PreparedStatement;
import java.sql.SQLException;
import java.util.ArrayList;
import java.util.List;
import org.apache.kafka.clients.consumer.ConsumerRecord;
import org.springframework.jdbc.core.BatchPreparedStatementSetter;
import org.springframework.jdbc.core.JdbcTemplate;
import org.springframework.kafka.annotation.KafkaListener;
import org.springframework.kafka.support.Acknowledgment;
import org.springframework.stereotype.Component;
import org.springframework.transaction.PlatformTransactionManager;
import org.springframework.transaction.support.TransactionTemplate;

/** One poll is one transaction and one batch of inserts; its offsets are acknowledged after the commit. */
@Component
class Listener {
    private final JdbcTemplate jdbc;
    private final TransactionTemplate transaction;
    private final ObjectReader reader;

    Listener(JdbcTemplate jdbc, PlatformTransactionManager manager, ObjectMapper mapper) {
        this.jdbc = jdbc;
        this.transaction = new TransactionTemplate(manager);
        this.reader = mapper.readerFor(Decision.class);
    }

    @KafkaListener(topics = "${peer.topic}")
    void store(List<ConsumerRecord<byte[], byte[]>> records, Acknowledgment acknowledgment) {
        List<Row> rows = new ArrayList<>(records.size());
        for (ConsumerRecord<byte[], byte[]> record : records) {
            rows.add(new Row(decode(record.value()), record));
        }
        transaction.executeWithoutResult(status -> jdbc.batchUpdate(Row.INSERT, new BatchPreparedStatementSetter() {
            @Override
            public void setValues(PreparedStatement statement, int i) throws SQLException {
                rows.get(i).fill(statement);
            }

            @Override
            public int getBatchSize() {
                return rows.size();
            }
        }));
        acknowledgment.acknowledge();
    }

    private Decision decode(byte[] value) {
        try {
            return reader.readValue(value);
        } catch (IOException e) {
            throw new UncheckedIOException(e);
        }
    }
}
