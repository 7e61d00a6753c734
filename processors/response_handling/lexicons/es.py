"""Spanish."""

from typing import Final

from processors.response_handling.lexicons import Words

WORDS: Final = Words(
    language="es",
    function="""
    el la los las un una unos unas de del y o pero es son era está están fue fueron ha han hay había se su sus tu
    tus mi mis que qué quién cuál cuánto cuántos cuándo dónde como cómo en con sin por para a al no sí más muy
    también ya aún todavía lo le les me te nos ese esa esta este estos estas eso desde hasta entre sobre porque si
    todos todas todo toda cada ambos ambas completo completa completamente entero
    """,
    others="""
    alza dom domingo jue jueves lun lunes mar martes media medio mié miércoles promediando promedio sube
    suben sáb sábado vie viernes
    """,
    months="enero ene|febrero feb|marzo mar|abril abr|mayo may|junio jun|julio jul|agosto ago|"
    "septiembre setiembre sept sep|octubre oct|noviembre nov|diciembre dic",
    numbers="""
    cero=0 dos=2 tres=3 cuatro=4 cinco=5 seis=6 siete=7 ocho=8 nueve=9 diez=10 once=11 doce=12 trece=13
    catorce=14 quince=15 dieciséis=16 diecisiete=17 dieciocho=18 diecinueve=19 veinte=20 treinta=30 cuarenta=40
    cincuenta=50 sesenta=60 setenta=70 ochenta=80 noventa=90 docena=12
    """,
    scales="mil=3 millón=6 millones=6 billón=12 billones=12",
    units="""
    ms: milisegundo milisegundos; s: segundo segundos; min: minuto minutos; h: hora horas hs;
    d: día días noche noches; wk: semana semanas; mo: mes meses; y: año años; %: por_ciento;
    mm: milímetro milímetros; cm: centímetro centímetros; m: metro metros; km: kilómetro kilómetros;
    mi: milla millas; ft: pie pies; g: gramo gramos; kg: kilo kilos kilogramo kilogramos; t: tonelada toneladas;
    l: litro litros; deg: grado grados; C: celsius; lb: libra_ libras_
    """,
    negation="vacío vacía vacíos vacías no ni nunca jamás ningún ninguna ninguno nada nadie sin tampoco",
    nothing="""
    vacío vacía vacíos vacías
    no_hay no_existe* no_tiene* no_consta* no_figura* no_aparece* nunca jamás ningún ninguna ninguno
    nada nadie no,
    """,
    failure="""
    tardó_demasiado se_cortó no_he_logrado
    error* fall* problema* no_se_pudo no_pude lamento siento indisponible imposible interrump* reintent*
    disculp* avería* no_disponible no_puedo no_pudo no_responde* no_respond* sin_respuesta sin_acceso
    sin_conexión más_tarde no_he_podido no_ha_podido no_fue_posible está_caíd* sin_servicio
    llen* lamentablemente desgraciadamente rechaz* deneg* bloque* caduc* venci* inválid* insuficiente*
    incomplet* parcial* dañad* excedi* rechazad* omitid* suspendid* retras* impagad* revertid* ausente
    falt* caíd*
    """,
    done="""
    otorgad* renovad*
    hecho hecha listo lista completad* terminad* eliminad* borrad* cread* enviad* pagad* reservad* cancelad*
    actualizad* entregad* guardad* añadid* confirmad* aprobad* procesad* transferid* reembolsad* activad* éxito
    recibid* realizad* registrad* modificad* abonad* anulad* listas listos activ* en_marcha funciona* publicad*
    instalad* desplegad* aplicad* aceptad* acreditad* ingresad* resuelt* abiert* cerrad* tramitad* cobrad*
    emitid* concedid* invitad* reiniciad* encendid* apagad* corregid* cambiad* en_línea expedid* finalizad*
    programad* correctamente
    """,
    yes="sí claro efectivamente correcto exacto por_supuesto desde_luego sin_problema",
    no="no",
    approx="rondaba* ronda rondan unos unas aproximadamente alrededor cerca casi más menos sobre en_torno algo hasta apenas poco",
    relative="hoy mañana ayer ahora próxim* pasad* anteayer últim* siguiente",
    harmless="""
    sin_problema* no_hay_problema no_te_preocupes no_se_preocupe nada_más no_hace_falta no_necesitas
    no_tienes_que no_tiene_que sin_coste sin_costo sin_cargo no_olvides no_olvide no_dudes no_dude si_quieres
    si_no no_solo sin_errores ningún_problema si_necesita*
    no_se_ha_tocado no_se_tocó no_se_han_tocado
    """,
    absent="""
    no_encuentro no_encontré no_se_encontr*
    información informaciones
    nada_sobre ninguna_información no_hay_información no_hay_datos no_consta no_se_indica no_indica no_se_menciona
    no_menciona no_especifica no_se_especifica información_sobre no_tengo_información ningún_dato
    sin_información
    """,
    total="total* suma suman sumando sumas conjunto en_total",
)
