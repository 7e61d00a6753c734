"""Portuguese."""

from typing import Final

from processors.response_handling.lexicons import Words

WORDS: Final = Words(
    language="pt",
    function="""
    o os as um uma uns umas de do da dos das e ou mas é são era está estão foi foram tem têm há havia se seu sua
    seus suas meu minha que quem qual quanto quantos quando onde como em no na nos nas num numa com sem por pelo
    pela para ao aos à às não sim mais muito também já ainda lhe você vocês ele ela eles elas isso este esta esse
    essa até entre sobre porque só dele dela ficou
    todos todas todo toda tudo cada ambos ambas completo completa completamente inteiro
    """,
    others="""
    alta caem cai caindo cair caiu caíram dom domingo média médias médio médios qua quarta quarta-feira
    queda qui quinta quinta-feira seg segunda segunda-feira sex sexta sexta-feira sobe sobem sáb sábado ter
    terça terça-feira
    """,
    months="janeiro jan|fevereiro fev|março mar|abril abr|maio mai|junho jun|julho jul|agosto ago|setembro set|"
    "outubro out|novembro nov|dezembro dez",
    numbers="""
    zero=0 dois=2 duas=2 três=3 quatro=4 cinco=5 seis=6 sete=7 oito=8 nove=9 dez=10 onze=11 doze=12 treze=13
    catorze=14 quatorze=14 quinze=15 dezesseis=16 dezasseis=16 dezessete=17 dezoito=18 dezenove=19 vinte=20
    trinta=30 quarenta=40 cinquenta=50 sessenta=60 setenta=70 oitenta=80 noventa=90 dúzia=12
    """,
    scales="mil=3 milhão=6 milhões=6 mi=6 bilhão=9 bilhões=9 bi=9",
    units="""
    ms: milissegundo milissegundos; s: segundo segundos; min: minuto minutos; h: hora horas;
    d: dia dias noite noites diária diárias; wk: semana semanas; mo: mês meses; y: ano anos; %: por_cento;
    mm: milímetro milímetros; cm: centímetro centímetros; m: metro metros; km: quilômetro quilômetros quilómetros;
    mi: milha milhas; g: grama gramas; kg: quilo quilos quilograma quilogramas; t: tonelada toneladas;
    l: litro litros; deg: grau graus; C: celsius
    """,
    negation="vazio vazia vazios vazias não nem nunca jamais nenhum nenhuma nada ninguém sem tampouco",
    nothing="""
    vazio vazia vazios vazias
    não_há não_existe* não_tem não_têm não_consta* nunca jamais nenhum nenhuma nada ninguém
    não,
    """,
    failure="""
    erro* falh* problema* desculp* lamento indisponív* impossív* interromp* tentar_novamente
    não_consegui* não_foi_possível não_pude não_pôde não_respond* sem_resposta sem_acesso sem_ligação
    fora_do_ar fora_de_serviço mais_tarde
    lotad* cheio cheia infelizmente recus* negad* bloque* expir* venceu inválid* insuficiente* incomplet* parcia*
    danificad* exced* rejeitad* recusad* suspens* atras* revertid* ignorad* falta* ausent* pulad*
    """,
    done="""
    concedid* deferid* renovad*
    feito feita pronto pronta concluíd* terminad* excluíd* apagad* criad* enviad* pag pago paga pagos reservad*
    cancelad* atualizad* entreg* salvo salva adicionad* confirmad* aprovad* processad* transferid* reembolsad*
    ativad* sucesso recebid* realizad* registrad* alterad* removid* efetuad* ativ* no_ar funcionando publicad*
    instalad* aplicad* aceit* creditad* depositad* resolvid* abert* fechad* quitad* emitid* liberad* convidad*
    reiniciad* ligad* desligad* corrigid* mudad* remarcad* agendad* finalizad* correu_bem cadastrad* inscrit*
    marcad* estornad*
    """,
    yes="sim claro certamente exato exatamente com_certeza sem_problema",
    no="não",
    approx="cerca aproximadamente quase uns umas mais menos em_torno perto até pouco volta por_volta",
    relative="hoje amanhã ontem agora próxim* passad* anteontem últim* seguinte",
    harmless="""
    sem_problema* não_se_preocupe nada_mais não_precisa não_é_preciso não_é_necessário sem_custo* sem_taxa*
    não_esqueça não_hesite se_quiser se_precisar não_só nenhum_problema sem_erros
    não_foi_alterad não_foram_alterad não_mexi
    """,
    absent="""
    não_encontr*
    informação informações
    nada_sobre não_há_informaç* nenhuma_informação sem_informaç* não_consta não_informa não_menciona não_especifica
    não_há_dados não_diz informação_sobre informações_sobre
    """,
    total="total* soma somam somando somados conjunto",
)
